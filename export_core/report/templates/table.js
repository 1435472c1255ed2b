// The table: goldens down, readers across. Only the rows in view are in the document; equal neighbours are one element.
const grid = at("grid"), head = at("grid-head"), body = at("grid-body");
const view = { readers: [], letters: 0, items: [], counts: null, first: 0, last: 0, current: { item: 1, column: 0 } };
const drawn = new Map();

// --- which rows, in which order: an item is the number of a row, or the text of a heading
const ORDERS = {
  writer: { heading: (row) => `${writerOf(row).title} · built ${writerOf(row).built}`, key: null },
  case: { heading: (row) => caseOf(row).name, key: (row) => rows.case[row] },
};
const badness = (cell) => (cell < 0 ? WORST.length : WORST.indexOf(state(cell).judgement));
function sortedRows(shown, order) {
  if (order in ORDERS) {
    const { key } = ORDERS[order];
    return key ? shown.sort((one, other) => key(one) - key(other) || one - other) : shown;
  }
  const place = readersByName.get(order);
  const broken = new Map(shown.map((row) => {
    if (place !== undefined) return [row, badness(cellAt(row, place))];
    let count = 0;
    for (let cell = rows.start[row]; cell < rows.start[row + 1]; cell += 1) count -= on[cell] && badness(cell) < 2;
    return [row, count];
  }));
  return shown.sort((one, other) => broken.get(one) - broken.get(other) || one - other);
}
function itemsOf(shown, order) {
  const ordered = sortedRows(shown, order), heading = ORDERS[order]?.heading;
  if (!heading) return ordered;
  return [...Map.groupBy(ordered, heading)].flatMap(([text, some]) => [`${text} · ${partOf(some)}`, ...some]);
}
// How many cells work, of those that the filter lets through.
const partOf = (some) => `${count(sum(some.map((row) => view.counts.works[row])))} of ${count(sum(some.map((row) => view.counts.byRow[row])))} cells work`;
// Where the headings name the writer, a row is named by its case, and the other way round.
function rowName(row, order) {
  const writer = writerOf(row).title;
  const platform = SEVERAL_PLATFORMS ? ` ${platformOf(row)}` : "";
  const name = { writer: caseOf(row).name, case: `written by ${writer}` }[order] ?? `${caseOf(row).name}  ${writer}`;
  return name + platform;
}

// --- ranges: neighbours of one runtime in one state; a reader without a cell, or with one that the filter leaves out, has none
function rangesOf(row, readers, filtered = true) {
  const ranges = [];
  readers.forEach((place, column) => {
    const cell = cellAt(row, place), off = cell >= 0 && filtered && !on[cell];
    const kind = cell < 0 ? "none" : off ? "off" : cells.state[cell];
    const last = ranges.at(-1), { runtime } = tables.reader[place];
    if (last && last.kind === kind && last.runtime === runtime) last.size += 1;
    else ranges.push({ kind, runtime, cell: off ? -1 : cell, column, size: 1 });
  });
  return ranges;
}
// The word or the symbol of the verdict, as there is room: brackets and marks say what the colour says.
function markOf({ cell, size }, letters) {
  const found = state(cell), { mark } = found, { word, symbol } = verdicts[found.verdict];
  return [...(found.promised ? [] : [`[${word}]${mark}`]), word + mark, symbol + mark].find((text) => text.length <= letters * size) ?? symbol;
}
function labelOf({ cell, size, column }, readers) {
  const [from, to] = [column, column + size - 1].map((place) => tables.reader[readers[place]].title);
  const where = size > 1 ? `${from} to ${to}, ${size} readers` : from;
  const row = rowOfCell[cell];
  return `${state(cell).judgement}, ${state(cell).verdict}: ${where}; ${caseOf(row).name} written by ${writerOf(row).title}`;
}
function drawRange(range, readers) {
  const element = make("div", { role: "gridcell", tabIndex: -1, ariaColIndex: range.column + 2, ariaColSpan: range.size });
  element.style.gridColumn = `span ${range.size}`;
  element.range = range;
  if (range.cell < 0) { element.className = range.kind; return element; }
  element.className = `cell ${state(range.cell).judgement}${state(range.cell).promised ? " promised" : ""}`;
  element.ariaLabel = element.title = labelOf(range, readers);
  element.append(make("span", {}, markOf(range, view.letters)));
  return element;
}
// A figure of the compiler from reader to reader, from 0 up: only where it changes.
function costLine(row) {
  const line = tables.cost[rows.cost[row]];
  if (!line) return [];
  const [words, values] = line, most = Math.max(...values), wide = 44 / Math.max(1, values.length - 1);
  const points = values.flatMap((value, place) => (value === null ? [] : [`${(2 + place * wide).toFixed(1)},${(14 - (12 * value) / (most || 1)).toFixed(1)}`]));
  return [shape("svg", { class: "cost", viewBox: "0 0 48 16", role: "img", "aria-label": words }, shape("title", {}, words), shape("polyline", { points: points.join(" ") }))];
}
// The worst judgement of a golden in each run that is compared, as small squares; of what is fine, what is promised.
const [FAILS, REST] = [WORST.slice(0, WORST.indexOf("outside")), WORST.slice(WORST.indexOf("outside"))];
const WORST_OF_RUNS = [...FAILS, ...REST.toReversed()];
function historyLine(row) {
  if (runs.length < 3) return [];
  const places = cellsOf(row);
  const worst = runs.map((_, run) => WORST_OF_RUNS.find((name) => places.some((cell) => historyOf(cell)[run]?.startsWith(`${name}:`))));
  const label = runs.map((name, run) => `${name}: ${worst[run] ?? "not there"}`).join("; ");
  return [make("span", { className: "history", role: "img", ariaLabel: label, title: label }, ...worst.map((name) => make("i", { className: `swatch ${name ?? ""}` })))];
}
function drawItem(index) {
  const item = view.items[index], row = make("div", { role: "row", ariaRowIndex: index + 2 });
  row.style.top = `calc(var(--row) * ${index})`;
  if (typeof item === "string") {
    row.className = "heading";
    row.append(make("div", { role: "rowheader", ariaColSpan: view.readers.length + 1 }, make("span", {}, make("bdi", {}, item))));
    return row;
  }
  const name = make("div", { role: "rowheader", tabIndex: -1, title: `${caseOf(item).case} on ${platformOf(item)}: ${partOf([item])}. Click: all generations.` });
  name.append(make("span", {}, make("bdi", {}, rowName(item, view.order))), make("small", {}, `${view.counts.works[item]}/${view.counts.byRow[item]}`), ...historyLine(item), ...costLine(item));
  row.append(name, ...rangesOf(item, view.readers).map((range) => drawRange(range, view.readers)));
  return row;
}

// --- drawing what is in view
// How many letters a column has room for; on another screen, all rows are drawn again.
function fit() {
  const column = head.firstElementChild?.children[1]?.getBoundingClientRect().width ?? 0;
  const letter = parseFloat(getComputedStyle(document.documentElement).fontSize) * (matchMedia("(max-width: 40rem)").matches ? 0.42 : 0.49);
  const letters = Math.floor((column - 3) / letter);
  if (letters === view.letters) return;
  view.letters = letters;
  drawn.clear();
  body.replaceChildren();
}
let height = 28;
function draw() {
  // As it is now: a phone has rows of another height.
  height = body.getBoundingClientRect().height / view.items.length || height;
  const first = Math.max(0, Math.floor((grid.scrollTop - head.offsetHeight) / height) - 8);
  const last = Math.min(view.items.length, Math.ceil((grid.scrollTop + grid.clientHeight) / height) + 8);
  for (const [index, row] of drawn) {
    // The row with the focus stays: without it, the keyboard would start again at the top of the page.
    if ((index < first || index >= last) && !row.contains(document.activeElement)) { row.remove(); drawn.delete(index); }
  }
  // From the last to the first: each goes before the next one, so that the document has them in order.
  for (let index = last - 1; index >= first; index -= 1) {
    if (drawn.has(index)) continue;
    const row = drawItem(index), next = drawn.get(index + 1);
    drawn.set(index, row);
    if (next) next.before(row);
    else body.append(row);
  }
  setCurrent(view.current, false);
}
function drawHead() {
  const columns = view.readers.map((place, column) => {
    const { built, name } = tables.reader[place];
    const { promised, kept } = view.counts;
    const score = promised[place] ? `${count(kept[place])}/${count(promised[place])}` : "–";
    const cell = make("div", { role: "columnheader", tabIndex: -1, ariaColIndex: column + 2, ariaSort: view.order === name ? "descending" : "none" },
      make("b", {}, tables.reader[place].title), make("span", { className: "built" }, built), make("span", { className: "score" }, score));
    cell.title = `Reader ${release(tables.reader[place])}: ${count(kept[place])} of ${count(promised[place])} promised cells in this table are kept. Click: worst first.`;
    cell.classList.toggle("bad", kept[place] < promised[place]);
    cell.classList.toggle("first", column > 0 && tables.reader[place].runtime !== tables.reader[view.readers[column - 1]].runtime);
    return cell;
  });
  head.replaceChildren(make("div", { role: "row", ariaRowIndex: 1 }, make("div", { role: "columnheader", className: "corner" },
    make("span", {}, "of a reader: kept of promised"), make("span", {}, "of a row: cells that work")), ...columns));
}
function drawTable(query, order) {
  view.order = order;
  view.counts = filterCells(query);
  const places = tables.reader.map((_, place) => place).filter((place) => view.counts.byReader[place]);
  view.readers = inOrder(places, (place) => tables.reader[place].runtime);
  view.items = itemsOf(Array.from(rows.golden.keys()).filter((row) => view.counts.byRow[row]), order);
  // On a wide screen no name is cut while there is room: its letters, the part that works, the history, the line of costs.
  const longest = view.items.reduce((most, item) => Math.max(most, typeof item === "string" ? 0 : rowName(item, order).length), 0);
  document.documentElement.style.setProperty("--columns", Math.max(1, view.readers.length));
  document.documentElement.style.setProperty("--letters", longest + 9 + (tables.cost.some(Boolean) ? 7 : 0) + (runs.length > 2 ? 2 * runs.length : 0));
  body.style.height = `calc(var(--row) * ${view.items.length})`;
  grid.ariaRowCount = view.items.length + 1;
  grid.ariaColCount = view.readers.length + 1;
  grid.scrollTop = 0;
  drawn.clear();
  body.replaceChildren();
  drawHead();
  fit();
  view.current = { item: typeof view.items[0] === "string" ? 1 : 0, column: 0 };
  draw();
}

// --- moving: the table is one tab stop, arrow keys move inside. Column -1 is the name, item -1 the head.
function elementAt({ item, column }) {
  if (item < 0) return head.firstElementChild.children[column + 1];
  const row = drawn.get(item);
  return [...(row?.children ?? [])].find(({ range }) => (column < 0 ? !range : range && range.column + range.size > column));
}
const focusable = (element) => (element?.hasAttribute("tabindex") ? element : null);
let current = null;
function setCurrent(place, focus = true) {
  view.current = place;
  const element = focusable(elementAt(place));
  if (element !== current) {
    if (current) current.tabIndex = -1;
    current = element;
  }
  if (!current) return;
  current.tabIndex = 0;
  if (focus) current.focus();
}
function reveal(item) {
  if (item < 0) return;
  const top = item * height, room = grid.clientHeight - head.offsetHeight;
  if (top < grid.scrollTop) grid.scrollTop = top;
  else if (top + height > grid.scrollTop + room) grid.scrollTop = top + height - room;
  draw();
}
function moveTo(item, column) {
  const step = item < view.current.item ? -1 : 1;
  let next = Math.max(-1, Math.min(view.items.length - 1, item));
  while (typeof view.items[next] === "string") next += step;
  if (next >= view.items.length) return;
  reveal(next);
  setCurrent({ item: next, column: Math.max(-1, Math.min(view.readers.length - 1, column)) });
}
function move(key) {
  const { item, column } = view.current, range = elementAt(view.current)?.range;
  const [from, to] = range ? [range.column, range.column + range.size] : [column, column + 1];
  const steps = {
    ArrowLeft: [item, from - 1], ArrowRight: [item, to], ArrowUp: [item - 1, column], ArrowDown: [item + 1, column],
    PageUp: [Math.max(0, item - 10), column], PageDown: [item + 10, column], Home: [item, -1], End: [item, view.readers.length - 1],
    "Ctrl+Home": [typeof view.items[0] === "string" ? 1 : 0, -1], "Ctrl+End": [view.items.length - 1, view.readers.length - 1],
  };
  if (!(key in steps)) return false;
  moveTo(...steps[key]);
  return true;
}
