// Which cells a filter lets through. A filter is a text of terms: key:value, key:"value", -key:value, words.
const TERM = /(-?)(?:([a-z]+):)?("[^"]*"?|[^\s"]+)/g;
const KEYS = ["judgement", "verdict", "writer", "reader", "runtime", "platform", "case", "call", "cause", "stage", "promised", "change"];

function parse(query) {
  return [...query.matchAll(TERM)].map(([all, minus, key, value]) => {
    // Messages have colons too: what is no key is a word.
    const known = KEYS.includes(key);
    const text = known ? value : all.slice(minus.length);
    const literal = text.startsWith('"');
    return { all, not: Boolean(minus), key: known ? key : "", text: text.replaceAll('"', ""), literal };
  });
}
function withTerm(query, key, value) {
  const terms = parse(query).filter((term) => term.key !== key || term.not).map(({ all }) => all);
  const plain = /^[^\s",*?]+$/.test(value);
  return [...terms, ...(value ? [`${key}:${plain ? value : `"${value.replaceAll('"', "")}"`}`] : [])].join(" ");
}

// What a filter asks for that this run does not have: why it lets nothing through.
function unknownIn(query) {
  return parse(query).flatMap((term) => {
    const [, typed] = term.key ? [] : term.all.match(/^-?([a-z]+):/) ?? [];
    if (typed) return [`There is no filter "${typed}:", so it is looked for as a word. Filters: ${KEYS.join(", ")}.`];
    const by = BY_ROW[term.key] ?? BY_CELL[term.key];
    if (!by || term.not || by(matcher(term))[1].some(Boolean)) return [];
    const values = valuesOf(term.key);
    return [`No cell has ${term.key} "${term.text}"${values ? `; there is ${values}` : ""}.`];
  });
}
// The choices for a key, where they are few.
function valuesOf(key) {
  const options = [...document.querySelectorAll(`select[data-key="${key}"] option`)].map(({ value }) => value).filter(Boolean);
  return options.length > 30 ? "" : options.join(", ");
}

function matcher({ text, literal }) {
  if (literal) return (value) => value === text;
  const alternatives = text.split(",").map((one) => one.replace(/[\\^$.+()|[\]{}]/g, "\\$&").replaceAll("*", ".*").replaceAll("?", "."));
  const pattern = new RegExp(`^(?:${alternatives.join("|")})$`, "is");
  return (value) => pattern.test(value);
}
const flags = (table, holds) => Uint8Array.from(table, (value) => holds(value));
const releaseIs = (is) => ({ jaxlib, name }) => is(jaxlib) || is(name);
const BY_ROW = {
  case: (is) => [rows.case, flags(tables.case, ({ case: id, name }) => is(id) || is(name))],
  writer: (is) => [rows.writer, flags(tables.writer, releaseIs(is))],
  platform: (is) => [rows.platform, flags(tables.platform, is)],
  call: (is) => [rows.calls, flags(tables.calls, (calls) => calls.some(is))],
};
const ofState = (name, word = String) => (is) => [cells.state, flags(tables.state, (value) => is(word(value[name])))];
const BY_CELL = {
  reader: (is) => [cells.reader, flags(tables.reader, releaseIs(is))],
  runtime: (is) => [cells.reader, flags(tables.reader, ({ runtime }) => is(runtime))],
  judgement: ofState("judgement"), verdict: ofState("verdict"), stage: ofState("stage"), cause: ofState("cause"),
  change: (is) => [cells.history, flags(tables.history, (history) => is(changeOf(history)))],
  promised: ofState("promised", (value) => (value ? "yes" : "no")),
};

// A word is looked for once in each different text, however many cells have it.
const lowered = {};
const texts = (name) => (lowered[name] ??= tables[name].map((value) => JSON.stringify(fieldsOf(value)).toLowerCase()));
// Without the names of fields, which are the same for all.
const fieldsOf = (value) => (value instanceof Object && !Array.isArray(value) ? Object.values(value) : value);
function wordIn(word) {
  const among = (name) => flags(texts(name), (text) => text.includes(word));
  return {
    rows: [[rows.case, among("case")], [rows.writer, among("writer")], [rows.platform, among("platform")], [rows.calls, among("calls")]],
    cells: ["reader", "state", "message", "stderr", "window", "more"].map((name) => [cells[name], among(name)]),
  };
}
const any = (columns, index) => columns.some(([column, hit]) => hit[column[index]]);

// Sets `on` for each cell that all terms let through. Counts these cells: of each row, and how many of them work; of each
// reader, how many of them are promised, and how many of those are kept.
const on = new Uint8Array(CELLS);
const IS_PROMISED = flags(tables.state, (one) => one.promised);
const KEEPS_PROMISE = flags(tables.state, (one) => one.promised && one.judgement === "kept");
const IS_WORKING = flags(tables.state, (one) => verdicts[one.verdict].works);
function filterCells(query) {
  const terms = parse(query);
  const keyed = (by) => terms.filter(({ key }) => key in by).map((term) => [...by[term.key](matcher(term)), term.not]);
  const [rowTerms, cellTerms] = [keyed(BY_ROW), keyed(BY_CELL)];
  const words = terms.filter(({ key }) => !key).map(({ text, not }) => ({ ...wordIn(JSON.stringify(text.toLowerCase()).slice(1, -1)), not }));
  const [byRow, works] = [new Int32Array(ROWS), new Int32Array(ROWS)];
  const [byReader, promised, kept] = Array.from({ length: 3 }, () => new Int32Array(tables.reader.length));
  on.fill(0);
  for (let row = 0; row < ROWS; row += 1) {
    if (rowTerms.some(([column, hit, not]) => Boolean(hit[column[row]]) === not)) continue;
    const left = words.filter((word) => word.not || !any(word.rows, row));
    if (left.some((word) => word.not && any(word.rows, row))) continue;
    for (let cell = rows.start[row]; cell < rows.start[row + 1]; cell += 1) {
      if (cellTerms.some(([column, hit, not]) => Boolean(hit[column[cell]]) === not)) continue;
      if (left.some((word) => any(word.cells, cell) === word.not)) continue;
      on[cell] = 1;
      const place = cells.reader[cell], own = cells.state[cell];
      byRow[row] += 1;
      works[row] += IS_WORKING[own];
      byReader[place] += 1;
      promised[place] += IS_PROMISED[own];
      kept[place] += KEEPS_PROMISE[own];
    }
  }
  return { byRow, works, byReader, promised, kept, count: sum(byRow) };
}
