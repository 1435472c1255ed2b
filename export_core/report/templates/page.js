"use strict";
// Filters the table and shows all details of a cell. The texts are in the data; none is made here.
const { strings, cells } = JSON.parse(document.getElementById("data").textContent);
const table = document.getElementById("matrix");
const tds = [...table.querySelectorAll("td[class]")];
const rows = [...table.querySelectorAll("tbody tr:not(:first-child)")];
const at = (id) => document.getElementById(id);
const text = ([, ...pieces]) => pieces.map((piece) => strings[piece]).join("");

// --- filters
const [JUDGEMENT, VERDICT] = [0, 1];
function shown(index, judgement, verdict, words) {
  const cell = cells[index];
  return (!judgement || strings[cell[JUDGEMENT][1]] === judgement)
    && (!verdict || strings[cell[VERDICT][1]] === verdict)
    && words.every((matches) => cell.some(([, ...pieces]) => pieces.some((piece) => matches[piece])));
}
function filter() {
  // Each string is searched once, however many cells have it.
  const words = at("by-text").value.toLowerCase().split(/\s+/).filter(Boolean)
    .map((word) => strings.map((string) => string.toLowerCase().includes(word)));
  let count = 0;
  const rowsShown = new Set();
  tds.forEach((td, index) => {
    const on = shown(index, at("by-judgement").value, at("by-verdict").value, words);
    td.classList.toggle("off", !on);
    if (on) { count += 1; rowsShown.add(td.parentElement); }
  });
  for (const row of rows) row.hidden = !rowsShown.has(row);
  for (const body of table.tBodies) body.hidden = ![...body.rows].some((row, number) => number && !row.hidden);
  at("shown").value = `${count} of ${tds.length} cells`;
  const first = tds.find((td) => !td.classList.contains("off"));
  if (current.classList.contains("off") && first) setCurrent(first);
}

// --- moving: the table is one tab stop, arrow keys move inside
let current = tds[0];
function setCurrent(td) {
  current.tabIndex = -1;
  current = td;
  current.tabIndex = 0;
}
// Labels are set when a cell is first pointed at: for 100,000 cells at once that would delay the first paint.
function label(td) {
  if (td.ariaLabel) return;
  const cell = cells[tds.indexOf(td)];
  td.ariaLabel = `${strings[cell[JUDGEMENT][1]]}, ${strings[cell[VERDICT][1]]}: ${text(cell[2])}`;
  td.title = td.ariaLabel;
}
function move(td, key) {
  const visible = (cell) => cell && cell.className && !cell.classList.contains("off");
  const row = td.parentElement;
  if (key === "ArrowLeft" || key === "ArrowRight") {
    const step = key === "ArrowLeft" ? "previousElementSibling" : "nextElementSibling";
    let next = td[step];
    while (next && !visible(next)) next = next[step];
    return next;
  }
  if (key === "Home" || key === "End") {
    const inRow = [...row.cells].filter(visible);
    return key === "Home" ? inRow[0] : inRow.at(-1);
  }
  const step = { ArrowUp: -1, ArrowDown: 1, PageUp: -10, PageDown: 10 }[key];
  if (!step) return null;
  const candidates = rows.filter((other) => !other.hidden && visible(other.cells[td.cellIndex]));
  const index = Math.max(0, candidates.indexOf(row) + step);
  return candidates[Math.min(candidates.length - 1, index)]?.cells[td.cellIndex];
}
table.addEventListener("focusin", ({ target }) => { if (target.matches("td[class]")) { setCurrent(target); label(target); } });
table.addEventListener("mouseover", ({ target }) => { if (target.matches("td[class]")) label(target); });
table.addEventListener("keydown", (event) => {
  if (!event.target.matches("td[class]")) return;
  const next = move(event.target, event.key);
  if (next) next.focus();
  else if (event.key === "Enter" || event.key === " ") show(event.target);
  else return;
  event.preventDefault();
});
table.addEventListener("click", ({ target }) => { if (target.matches("td[class]")) { setCurrent(target); show(target); } });

// --- all details of one cell
function show(td) {
  const list = at("cell").querySelector("dl");
  const cell = cells[tds.indexOf(td)];
  at("cell-title").textContent = td.parentElement.cells[0].title;
  list.replaceChildren(...cell.flatMap((detail) => {
    const [term, value] = [document.createElement("dt"), document.createElement("dd")];
    term.textContent = strings[detail[0]];
    value.textContent = text(detail);
    return [term, value];
  }));
  at("cell").showModal();
}
at("cell").addEventListener("close", () => current.focus());

for (const id of ["by-judgement", "by-verdict", "by-text"]) at(id).addEventListener("input", filter);
at("filter").addEventListener("submit", (event) => event.preventDefault());
table.role = "grid";
table.classList.add("live");
for (const td of tds) td.tabIndex = -1;
setCurrent(current);
at("filter").hidden = at("keys").hidden = false;
filter();
document.documentElement.dataset.ready = "yes";
