// All details of one cell, and the generations of its case side by side.
const dialog = at("cell");

const addressOf = (name, value) => `#${name}=${encodeURIComponent(value)}`;
const link = (href, text) => make("a", { href }, text);
// An option and its value are one piece: no line ends inside.
const pieces = (text) => text.split(/ (?=--)/).flatMap((piece, place) => [place ? " " : "", make("span", {}, piece)]);
const copyable = (text) => make("div", { className: "command" }, make("code", {}, ...pieces(text)), make("button", { type: "button", className: "copy" }, "Copy"));
const commandOf = (cell) => tables.command[cells.command[cell]].map((piece) => (typeof piece === "string" ? piece
  : [caseOf(rowOfCell[cell]).case, writerOf(rowOfCell[cell]).jaxlib, reader(cell).jaxlib][piece])).join("");
// The path first: a page that was moved or sent on still says where the files are, though its links may be dead.
function filesOf(row) {
  const names = tables.names[rows.names[row]], parts = rows.golden[row].split("/");
  const linked = (name) => (files ? link(files + [...parts, name].map(encodeURIComponent).join("/"), name) : name);
  return make("span", {}, [goldens, ...parts].join("/"), ...names.flatMap((name, place) => [place ? ", " : ": ", linked(name)]));
}

// In which unit errors count.
const explained = (inNoise, hasElements) => `${inNoise ? "Elements are judged in units of the noise that their writer measured" : "Elements are judged by their absolute error"}.${inNoise && hasElements ? " What an element is off by is absolute: of the one named first it need not be the largest." : ""}`;
function numbersOf(cell) {
  const { max_abs_error: absolute, max_rel_error: relative, max_noise_error: noise, elements } = tables.numbers[cells.numbers[cell]];
  const allowed = tables.more[cells.more[cell]].allowed || (tables.message[cells.message[cell]].match(/allowed ([^)]*)\)/) ?? [])[1];
  if (absolute === null && relative === null && noise === null) return null;
  const line = (tag, values, scope) => make("tr", {}, ...values.map((value, place) => make(place && scope !== "col" ? "td" : tag, place && scope !== "col" ? {} : { scope }, value)));
  // What decides comes first: elements are judged by their noise where the writer measured it.
  const sizes = [...(noise === null ? [] : [["times the noise", noise]]), ["absolute", absolute], ["relative", relative]];
  return make("div", { className: "numbers", tabIndex: 0 },
    make("table", {}, make("caption", {}, "Largest errors of all elements"),
      make("thead", {}, line("th", [...sizes.map(([name]) => name), "allowed"], "col")),
      make("tbody", {}, make("tr", {}, ...sizes.map(([, value]) => make("td", {}, size(value))), make("td", {}, allowed || "–")))),
    ...(elements.length ? [make("table", {}, make("caption", {}, "Elements"),
      make("thead", {}, line("th", ["element", "expected", "found", "off by"], "col")),
      make("tbody", {}, ...elements.map((element) => line("th", element, "row"))))] : []),
    make("p", { className: "hint" }, explained(noise !== null, elements.length > 0)));
}

// What the card of its cause says: the name of it, since when, what to do.
function causeOf(found) {
  if (!found.cause) return [];
  const id = `${found.cause}=${found.judgement}`, card = at(`cause=${id}`);
  const text = (selector) => card?.querySelector(selector)?.textContent;
  return [
    ["cause", link(addressOf("cause", id), text("h3 .title") ?? found.cause)],
    ["since when", text(".change")],
    ["whose fault", text(".fault")],
    ["to do", text(".todo span")],
  ];
}
// Whose promise counts, in a reader that is not jaxlib: its source can be followed.
const promiseOf = (cell) => reader(cell).promise && make("span", {}, ...reader(cell).promise.split(/(https:[^\s)]+)/).map((part, place) => (place % 2 ? link(part, part) : part)));
const TIMES = { deserialize: "deserialize", lower: "lower", compile: "compile", run: "run", runs: "run again (median)", peak_bytes: "peak memory" };
const timesOf = (cell) => Object.entries(TIMES).map(([name, words]) => [words, timings[name][cell], name === "peak_bytes" ? "MB" : "ms"])
  .filter(([, value]) => (value ?? null) !== null).map((words) => words.join(" ")).join(", ");
function factsOf(cell) {
  const row = rowOfCell[cell], found = state(cell);
  // What else a result says, each by the name of its field.
  const { facts, device, driver, ...others } = tables.more[cells.more[cell]];
  return [
    ["numbers", numbersOf(cell)],
    ["where", tables.grid[cells.grid[cell]] && errorPicture(tables.grid[cells.grid[cell]])],
    ["message", make("pre", { tabIndex: 0 }, tables.message[cells.message[cell]] || found.phrase)],
    ...causeOf(found),
    ...facts,
    ["change", [changeOf(tables.history[cells.history[cell]]), historyOf(cell)[pair[0]]].filter(Boolean).join("; it was ")],
    ["history", runs.length > 2 && runs.map((name, run) => `${name}: ${historyOf(cell)[run] || "not there"}`).reverse().join("\n")],
    ["case", link(addressOf("case", caseOf(row).case), caseOf(row).case)],
    ["written by", `${release(writerOf(row))} on ${writerOf(row).platform}`],
    ["read by", make("span", {}, link(addressOf("reader", reader(cell).name), release(reader(cell))), ` on ${platformOf(row)}`)],
    ["window", tables.window[cells.window[cell]]],
    ["promise", promiseOf(cell)],
    ["stage", found.stage + (found.mode && `; ${found.mode}`)],
    ["device", [device, driver].filter(Boolean).join(", ")],
    ...Object.entries(others),
    ["custom calls", tables.calls[rows.calls[row]].join(", ")],
    ["stderr", tables.stderr[cells.stderr[cell]] && make("pre", { tabIndex: 0 }, tables.stderr[cells.stderr[cell]])],
    ["reproduce", copyable(commandOf(cell))],
    ["files", goldens && filesOf(row)],
    ["cost", tables.figures[cells.figures[cell]]],
    ["times", timesOf(cell)],
    ["seconds", String(cells.seconds[cell])],
  ].filter(([, value]) => value);
}

// A plain table of some rows: the generations of a case here, the whole table on paper.
function plainTable(shown, readers, { name, filtered, letters, chosen = -1, caption = "" }) {
  const heads = readers.map((place) => make("th", { scope: "col" }, make("span", {}, tables.reader[place].title)));
  const body = shown.map((row) => make("tr", {}, make("th", { scope: "row" }, name(row)),
    ...rangesOf(row, readers, filtered).map((range) => {
      const cell = make("td", { colSpan: range.size });
      if (range.cell < 0) return cell;
      cell.className = `cell ${state(range.cell).judgement}${state(range.cell).promised ? " promised" : ""}`;
      const holds = chosen >= 0 && rowOfCell[chosen] === row && readers.slice(range.column, range.column + range.size).includes(cells.reader[chosen]);
      cell.classList.toggle("chosen", holds);
      const mark = markOf(range, letters);
      cell.append(filtered ? mark : make("a", { href: hashOf({ cell: cellName(range.cell) }), ariaLabel: labelOf(range, readers) }, mark));
      return cell;
    })));
  return make("table", { className: "plain" }, make("caption", {}, caption), make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "golden"), ...heads)), make("tbody", {}, ...body));
}
let rowsByCase = null;
function generationsOf(cell) {
  rowsByCase ??= Map.groupBy(rows.golden.keys(), (row) => rows.case[row]);
  const shown = rowsByCase.get(rows.case[rowOfCell[cell]]);
  const places = [...new Set(shown.flatMap((row) => cells.reader.slice(rows.start[row], rows.start[row + 1])))].sort((one, other) => one - other);
  const readers = inOrder(places, (place) => tables.reader[place].runtime);
  return plainTable(shown, readers, { name: (row) => rowName(row, "case"), filtered: false, letters: 5, chosen: cell, caption: "All generations of this case, in all readers" });
}

function neighbour(cell, step) {
  const other = cell + step;
  const isNext = other >= 0 && other < CELLS && rowOfCell[other] === rowOfCell[cell];
  return isNext && reader(other).runtime === reader(cell).runtime ? other : -1;
}
function fillDialog(cell) {
  const found = state(cell);
  at("cell-title").textContent = `${caseOf(rowOfCell[cell]).name}: ${found.phrase}`;
  at("cell-line").replaceChildren(make("span", { className: `badge ${found.judgement}` }, found.judgement),
    ` ${found.verdict} · written by ${writerOf(rowOfCell[cell]).title} · read by ${reader(cell).title} on ${platformOf(rowOfCell[cell])}`);
  for (const [id, step] of [["older", -1], ["newer", 1]]) {
    const other = neighbour(cell, step);
    at(id).disabled = other < 0;
    at(id).title = other < 0 ? "" : `${reader(other).title}: ${state(other).judgement}, ${state(other).verdict}`;
  }
  at("cell-facts").replaceChildren(...factsOf(cell).flatMap(([label, value]) => [make("dt", {}, label), make("dd", {}, value)]));
  at("cell-pictures").replaceChildren(...[stripOf(cell), byRelease(cell), byDay(cell)].filter(Boolean));
  at("cell-generations").replaceChildren(generationsOf(cell));
  dialog.dataset.cell = cell;
}
