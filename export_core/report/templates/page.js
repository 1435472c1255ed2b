// What is shown is what the address says: #filter=…&order=…&cell=…, #case=…, #reader=… or #cause=…; the controls only
// change the address.
const NAMES = ["filter", "case", "reader", "order", "runs", "cell", "cause"];
const field = at("query");
const FACETS = [...document.querySelectorAll("select[data-key]")];
let shown = { filter: null, order: null };
// Where the focus came from, to which Escape leads back: from the table, and from the dialog of a cell.
let origin = null, opener = null;

function partsOf(hash) {
  const parts = {};
  for (const part of hash.slice(1).split("&")) {
    const [name, value] = [part.slice(0, part.indexOf("=")), part.slice(part.indexOf("=") + 1)];
    // An address that somebody cut or mistyped shows the page, and no error; what it names is not in the page.
    try { if (NAMES.includes(name)) parts[name] = decodeURIComponent(value); } catch { if (["cell", "cause"].includes(name)) parts[name] = value; }
  }
  return parts;
}
function hashOf(changes) {
  const { cause, ...parts } = { ...partsOf(location.hash), ...changes };
  // A filter takes over what the address of a case or of a reader shows.
  if ("filter" in changes && !changes.case) delete parts.case, delete parts.reader;
  const text = NAMES.filter((name) => parts[name]).map((name) => `${name}=${encodeURIComponent(parts[name])}`).join("&");
  return `#${text}`;
}
function go(changes, replace = false) {
  const hash = hashOf({ ...typed(), ...changes });
  if (replace) history.replaceState(history.state, "", hash);
  else history.pushState({ opened: true }, "", hash);
  route();
}

function route() {
  const { cell = "", cause = "", ...place } = partsOf(location.hash);
  const filter = ["case", "reader"].reduce((text, key) => (place[key] ? withTerm(text, key, place[key]) : text), place.filter ?? "");
  const order = place.order ?? (place.case ? "case" : place.reader || "writer");
  const isFirst = shown.filter === null;
  const isOtherPair = runs.length > 1 && showPair(place.runs);
  if (filter !== shown.filter || order !== shown.order || isOtherPair) showTable(filter, order);
  const number = cell ? cellNamed(cell) : -1;
  if (number >= 0) showCell(number);
  else if (dialog.open) dialog.close();
  const missing = cell && number < 0 ? `This page has no cell ${cell}. The address may be of another run.` : cause && !cardOf(cause) ? withoutCard(cause) : "";
  at("missing").textContent = missing;
  at("missing").hidden = !missing;
  if (missing) at("missing").scrollIntoView({ block: "nearest" });
  else if (cause) showCard(cardOf(cause));
  // Whoever gets the address of a filter is to see what it lets through.
  else if (isFirst && filter) at("table").scrollIntoView();
}
// Two runs of several: the earlier one first, whichever way they were picked.
function showPair(text = "") {
  const picked = text.split("-").map(Number).sort((one, other) => one - other);
  pair = picked.length === 2 && picked[0] < picked[1] && picked[1] < runs.length ? picked : [runs.length - 2, runs.length - 1];
  if (shown.runs === pair.join("-")) return false;
  shown.runs = pair.join("-");
  if (runs.length > 2) [at("then").value, at("now").value] = pair;
  const counts = new Map();
  for (let cell = 0; cell < CELLS; cell += 1) {
    const change = changeOf(tables.history[cells.history[cell]]);
    if (change) counts.set(change, (counts.get(change) ?? 0) + 1);
  }
  const choices = document.querySelector("select[data-key=change]");
  choices.parentElement.hidden = false;
  choices.replaceChildren(make("option", { value: "" }, "all"), ...[...counts].sort().map(([name, cells]) => make("option", { value: name }, `${name} (${count(cells)})`)));
  return true;
}
function showTable(filter, order) {
  shown = { ...shown, filter, order };
  if (field.value !== filter) field.value = filter;
  // What is hidden has no size, and rows are drawn for a size.
  grid.hidden = false;
  drawTable(filter, order);
  at("count").textContent = `${count(view.counts.count)} of ${count(CELLS)} cells`;
  at("clear").hidden = !filter;
  at("empty").hidden = view.counts.count > 0;
  if (!view.counts.count) at("empty").textContent = ["No cell fits this filter.", ...unknownIn(filter)].join(" ");
  grid.hidden = !view.counts.count;
  const terms = parse(filter);
  for (const select of FACETS) choose(select, terms.find(({ key, not }) => key === select.dataset.key && !not)?.text ?? "");
  choose(at("order"), order);
  for (const chip of document.querySelectorAll(".chip")) chip.ariaCurrent = partsOf(chip.getAttribute("href")).filter === filter ? "true" : null;
}
function choose(select, value) {
  select.value = value;
  // The text may ask for more than there is an option for.
  if (select.selectedIndex < 0) select.value = "";
}
function showCell(cell) {
  fillDialog(cell);
  if (!dialog.open) {
    opener = document.activeElement;
    dialog.showModal();
  }
  dialog.scrollTop = 0;
}
function refocus() {
  // It comes after the dialog has closed: whoever has gone elsewhere by then stays there.
  if (![document.body, at("table")].includes(document.activeElement)) return;
  const isElsewhere = opener?.isConnected && opener !== document.body && !grid.contains(opener) && !dialog.contains(opener);
  (isElsewhere ? opener : current)?.focus();
}
// Without a judgement, the worst of the causes with this name; the first where the one that is asked for is not listed.
function cardOf(cause) {
  return document.getElementById(`cause=${cause}`) ?? document.querySelector(`[id^="${CSS.escape(`cause=${cause.split("=")[0]}=`)}"]`);
}
function withoutCard(cause) {
  const [name] = cause.split("=");
  // Refusals outside the window are expected, and of very many causes not all are listed.
  if (tables.state.some((one) => one.cause === name)) return `This page does not list the cause ${name}. The filter ${withTerm("", "cause", name)} shows its cells.`;
  return `This page has no cause ${name}. The address may be of another run.`;
}
function showCard(card) {
  for (let place = card; place; place = place.parentElement) if (place.tagName === "DETAILS") place.open = true;
  card.scrollIntoView({ block: "center" });
  card.focus({ preventScroll: true });
}

// --- the address changes
let isLeaving = false;
addEventListener("popstate", () => {
  isLeaving = false;
  typed();
  route();
  // A browser that goes back to #table moves the focus there.
  if (opener && !dialog.open) setTimeout(refocus);
});
document.addEventListener("click", (event) => {
  const anchor = event.target.closest("a[href^='#']"), address = anchor?.getAttribute("href");
  if (!anchor || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  // A place on the page is no part of the address: going back from a dialog would move the focus to that place.
  if (!address.includes("=")) { at(address.slice(1)).scrollIntoView(); at(address.slice(1)).focus(); return; }
  typed();
  history.pushState({ opened: true }, "", address);
  route();
  if (dialog.open || partsOf(address).cause) return;
  origin = anchor;
  at("table").scrollIntoView();
  setCurrent(view.current);
});
// Browsers refuse to change the address with every key: it follows when the typing stops.
let typing = 0;
function typed() {
  const changes = typing ? { filter: field.value } : {};
  clearTimeout(typing);
  typing = 0;
  return changes;
}
field.addEventListener("input", () => {
  showTable(field.value, shown.order);
  clearTimeout(typing);
  typing = setTimeout(() => go({ cell: "", cause: "" }, true), 300);
});
at("search").addEventListener("submit", (event) => event.preventDefault());
for (const select of FACETS) {
  // Only what there is a choice of.
  select.parentElement.hidden = select.options.length < 3;
  select.addEventListener("change", () => go({ filter: withTerm(shown.filter, select.dataset.key, select.value), cell: "" }));
}
at("order").addEventListener("change", () => go({ order: at("order").value === "writer" ? "" : at("order").value }));
for (const id of runs.length > 2 ? ["then", "now"] : []) {
  at(id).addEventListener("change", () => go({ runs: `${at("then").value}-${at("now").value}` }));
}
at("clear").addEventListener("click", () => { go({ filter: "" }); field.focus(); });

// --- the table: a click or Enter opens a cell, all generations of a row's case, or sorts by a column
function activate(element, fraction = 0) {
  const { range } = element;
  if (range && range.cell >= 0) {
    // Of a range, the one that is pointed at.
    const column = range.column + Math.min(range.size - 1, Math.floor(fraction * range.size));
    const cell = cellAt(rowOfCell[range.cell], view.readers[column]);
    setCurrent({ item: view.current.item, column });
    go({ cell: cellName(cell) });
  } else if (element.role === "columnheader" && element.tabIndex >= -1 && element.ariaColIndex) {
    const { name } = tables.reader[view.readers[element.ariaColIndex - 2]];
    const place = view.readers[element.ariaColIndex - 2];
    go({ order: shown.order === name ? "" : name });
    // The table is new: the keyboard stays where it was.
    setCurrent({ item: -1, column: view.readers.indexOf(place) });
  } else if (element.role === "rowheader") {
    go({ filter: "", case: caseOf(view.items[view.current.item]).case, order: "" });
    setCurrent({ item: view.current.item, column: -1 });
  }
}
const itemOf = (element) => (head.contains(element) ? -1 : element.parentElement.ariaRowIndex - 2);
const placeOf = (element) => ({ item: itemOf(element), column: element.range?.column ?? (element.ariaColIndex ?? 1) - 2 });
grid.addEventListener("click", (event) => {
  const element = event.target.closest("[tabindex]");
  if (!element || element === grid) return;
  const { left, width } = element.getBoundingClientRect();
  setCurrent(placeOf(element));
  // A click that no pointer made, as that of voice control, is at no place.
  activate(element, event.detail ? (event.clientX - left) / width : 0);
});
grid.addEventListener("keydown", (event) => {
  const isCorner = event.ctrlKey && ["Home", "End"].includes(event.key);
  if ((event.ctrlKey && !isCorner) || event.metaKey || event.altKey || event.target === grid) return;
  if (event.target !== current) setCurrent(placeOf(event.target));
  if (event.key === "Escape") origin?.focus();
  else if (isCorner) move(`Ctrl+${event.key}`);
  else if (event.key === "Enter" || event.key === " ") activate(event.target);
  else if (!move(event.key)) return;
  event.preventDefault();
});
let asked = 0;
grid.addEventListener("scroll", () => { asked ||= requestAnimationFrame(() => { asked = 0; draw(); }); }, { passive: true });
addEventListener("resize", () => { fit(); draw(); });
phone.addEventListener("change", () => showTable(shown.filter, shown.order));

// --- the dialog
at("older").addEventListener("click", () => go({ cell: cellName(neighbour(Number(dialog.dataset.cell), -1)) }, true));
at("newer").addEventListener("click", () => go({ cell: cellName(neighbour(Number(dialog.dataset.cell), 1)) }, true));
// Closing changes the address, and the dialog follows it. A dialog that closed first would let a click through to the
// page, and the browser, which goes back a little later, would undo what that click did.
function leave() {
  if (isLeaving) return;
  isLeaving = Boolean(history.state?.opened);
  if (isLeaving) history.back();
  else go({ cell: "" }, true);
}
at("close").addEventListener("click", leave);
dialog.addEventListener("click", ({ target }) => { if (target === dialog) leave(); });
dialog.addEventListener("cancel", (event) => { event.preventDefault(); leave(); });
dialog.addEventListener("close", () => {
  // The event comes later than the closing: whoever has gone back and forward again by then sees a cell.
  if (dialog.open) return;
  // Some browsers close it without asking. The address of a cell that is not here stays, with the line about it.
  if (cellNamed(partsOf(location.hash).cell ?? "") >= 0) leave();
  if (!partsOf(location.hash).cause) refocus();
});

// --- commands and addresses are copied
async function copy(button) {
  const text = button.dataset.copy === "address" ? location.href : button.previousElementSibling.textContent;
  try {
    await navigator.clipboard.writeText(text);
    at("status").textContent = button.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(button.previousElementSibling ?? button);
    button.textContent = "Press Ctrl+C";
  }
}
document.addEventListener("click", ({ target }) => { if (target.matches("button.copy")) copy(target); });

// --- paper has all rows, in tables of as many readers as fit, and nothing folded
const PER_PAGE = 18;
addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll("details:not([open])")) { details.open = true; details.dataset.printed = ""; }
  const all = view.items.filter((item) => typeof item === "number"), tablesOnPaper = [];
  const parts = Math.ceil(view.readers.length / PER_PAGE), width = Math.ceil(view.readers.length / parts);
  for (let from = 0; from < view.readers.length; from += width) {
    tablesOnPaper.push(plainTable(all, view.readers.slice(from, from + width), { name: (row) => rowName(row, ""), filtered: true, letters: Math.floor(120 / width), caption: shown.filter && `Only: ${shown.filter}` }));
  }
  at("paper").replaceChildren(...tablesOnPaper);
});
addEventListener("afterprint", () => {
  at("paper").replaceChildren();
  for (const details of document.querySelectorAll("details[data-printed]")) { details.open = false; delete details.dataset.printed; }
});

document.documentElement.dataset.ready = "yes";
route();
performance.mark("ready");
if (at("over-time")) drawOverTime(at("over-time"));
