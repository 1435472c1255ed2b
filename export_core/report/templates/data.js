"use strict";
// The data of the page: columns of numbers, which are places in tables of values. The texts are made in Python, and the
// names are those of the fields of a result.
const { tables, rows, cells, timings, goldens, files, judgements: WORST, verdicts, runs, entries, issues, figures: COSTS, as_of: asOf } = JSON.parse(document.getElementById("data").textContent);
const ROWS = rows.golden.length, CELLS = cells.reader.length;
const at = (id) => document.getElementById(id);

const rowOfCell = new Int32Array(CELLS);
for (let row = 0; row < ROWS; row += 1) rowOfCell.fill(row, rows.start[row], rows.start[row + 1]);

const state = (cell) => tables.state[cells.state[cell]];
const reader = (cell) => tables.reader[cells.reader[cell]];
const caseOf = (row) => tables.case[rows.case[row]];
const writerOf = (row) => tables.writer[rows.writer[row]];
const platformOf = (row) => tables.platform[rows.platform[row]];
const cellsOf = (row) => Array.from({ length: sizeOf(row) }, (_, place) => rows.start[row] + place);
// A narrow screen shows the newest release of each runtime first.
const phone = matchMedia("(max-width: 40rem)");
const inOrder = (some, runtimeOf) => (phone.matches ? [...Map.groupBy(some, runtimeOf).values()].flatMap((own) => own.toReversed()) : some);
const SEVERAL_PLATFORMS = tables.platform.length > 1;
const release = ({ title, jax, jaxlib, built }) => `${jax ? `jaxlib ${jaxlib} with jax ${jax}` : title} (built ${built})`;

// --- the address of a cell: its golden, reader and platform, in one text and back
const rowsByName = new Map(rows.golden.map((golden, row) => [`${golden} ${platformOf(row)}`, row]));
const readersByName = new Map(tables.reader.map(({ name }, place) => [name, place]));
const cellName = (cell) => `${rows.golden[rowOfCell[cell]]} ${reader(cell).name} ${platformOf(rowOfCell[cell])}`;
function cellAt(row, place) {
  // The cells of a row are in the order of the readers.
  let [low, high] = [rows.start[row], rows.start[row + 1]];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (cells.reader[middle] < place) low = middle + 1;
    else high = middle;
  }
  return low < rows.start[row + 1] && cells.reader[low] === place ? low : -1;
}
function cellNamed(name) {
  const [, golden, readerName, platform] = name.match(/^(.*) (\S+) (\S+)$/s) ?? [];
  const [row, place] = [rowsByName.get(`${golden} ${platform}`), readersByName.get(readerName)];
  return row === undefined || place === undefined ? -1 : cellAt(row, place);
}

const sizeOf = (row) => rows.start[row + 1] - rows.start[row];
const sum = (numbers) => numbers.reduce((all, one) => all + one, 0);
const count = (number) => number.toLocaleString("en");

// --- the runs that are compared: their places in `runs`. Changes are those of each two, 0-1, 0-2, 1-2 of three runs.
let pair = [runs.length - 2, runs.length - 1];
const changeOf = ([, changes = []]) => changes[pair[0] * runs.length - (pair[0] * (pair[0] + 1)) / 2 + pair[1] - pair[0] - 1] ?? "";
const historyOf = (cell) => tables.history[cells.history[cell]][0] ?? [];

// --- elements, always from text and never from markup
function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in element) element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}
const SVG = "http://www.w3.org/2000/svg";
function shape(tag, properties = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(properties)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}
