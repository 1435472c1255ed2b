// Pictures of one cell: where in an array its errors are, and its golden from release to release and from run to run.
// A tie is rounded to the even digit, as in every message; toPrecision alone would round it up.
function size(value) {
  if (value === null) return "–";
  const tie = value.toExponential(40).match(/^(-?\d\.\d[02468])50*(e.*)$/);
  return String(Number(tie ? tie[1] + tie[2] : value.toPrecision(3)));
}
const drawing = (width, height, label, ...children) =>
  shape("svg", { class: "drawing chart", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label }, ...children);
const figure = (caption, picture, rest = [], label = caption) =>
  make("figure", {}, make("figcaption", {}, caption), make("div", { className: "chart-room", tabIndex: 0, role: "region", ariaLabel: label }, picture), ...rest);
const textAt = (x, y, text, kind = "date", anchor = "start") => shape("text", { class: kind, x, y, "text-anchor": anchor }, text);

// A scale of decades from the least to the largest of some numbers: which share of the height a number has.
function decadesOf(numbers) {
  const positive = numbers.filter((number) => number > 0);
  if (!positive.length) return { low: 0, high: 0, share: () => 0 };
  const low = Math.floor(Math.log10(positive.reduce((least, one) => Math.min(least, one), Infinity)));
  const high = Math.max(low + 1, Math.ceil(Math.log10(positive.reduce((most, one) => Math.max(most, one), 0))));
  return { low, high, share: (number) => (number > 0 ? (Math.log10(number) - low) / (high - low) : 0) };
}

// --- the errors of an array, in parts: bars of a line beside what is allowed, squares of anything else
const kindOf = (error, allowed) => (error === null ? "infinite" : error > allowed ? "beyond" : error > 0 ? "within" : "none");
function errorPicture(grid) {
  const { rows: down, columns: across, height, width, errors, allowed } = grid;
  const kinds = errors.map((error, part) => kindOf(error, allowed[part]));
  const worst = errors.reduce((most, error, part) => (kinds[part] === "beyond" && allowed[part] ? Math.max(most, error / allowed[part]) : most), 0);
  const largest = errors.reduce((most, error) => Math.max(most, error ?? 0), 0);
  const often = (kind) => kinds.filter((one) => one === kind).length;
  const facts = [
    `${count(often("beyond"))} of ${count(errors.length)} parts have an error that is not allowed`,
    worst ? `at most ${size(worst)} times what is allowed there` : often("beyond") ? `at most ${size(largest)}, where nothing is allowed` : "",
    often("infinite") ? `${count(often("infinite"))} with NaN or infinity on one side only` : "",
  ].filter(Boolean).join("; ");
  const axes = down === 1 ? `${count(width)} elements from left to right` : `the last axis, ${count(width)} elements, from left to right; all others, ${count(height)}, downwards`;
  const caption = `Where the errors are: ${facts}. A part shows its worst element; ${axes}.`;
  const picture = down === 1 ? errorLine(grid, kinds, caption) : errorSquares(grid, kinds, caption);
  const legend = [["beyond", "not allowed"], ["within", "allowed"], ["none", "no error"], ["infinite", "NaN or infinite"]]
    .filter(([kind]) => often(kind)).map(([kind, words]) => make("span", {}, make("i", { className: `part ${kind}` }), words));
  if (down === 1 && allowed.some(Boolean)) legend.push(make("span", {}, make("i", { className: "part limit" }), "what is allowed"));
  return figure(caption, picture, [make("p", { className: "key" }, ...legend)]);
}
const partTitle = ({ rows: down, columns: across, height, width, errors, allowed }, part) => {
  const [row, column] = [Math.floor(part / across), part % across];
  const range = (place, parts, all) => [Math.floor((all * place) / parts), Math.floor((all * (place + 1)) / parts) - 1].filter((end, number, ends) => number === 0 || end !== ends[0]).join(" to ");
  const where = [...(down > 1 ? [range(row, down, height)] : []), range(column, across, width)].join(", ");
  return shape("title", {}, `[${where}]: error ${errors[part] === null ? "not finite" : size(errors[part])}, allowed ${size(allowed[part])}`);
};
function errorLine(grid, kinds, caption) {
  const { columns: across, width, errors, allowed } = grid;
  const [left, top, wide, high] = [58, 8, 576, 110], scale = decadesOf([...errors.filter((error) => error !== null), ...allowed]);
  const part = wide / across, y = (number) => top + high * (1 - scale.share(number));
  const step = Math.ceil((scale.high - scale.low) / 5) || 1;
  const lines = Array.from({ length: scale.high - scale.low + 1 }, (_, place) => scale.low + place).filter((decade) => (decade - scale.low) % step === 0)
    .flatMap((decade) => [shape("line", { class: "grid", x1: left, x2: left + wide, y1: y(10 ** decade), y2: y(10 ** decade) }), textAt(left - 6, y(10 ** decade) + 3, `1e${decade}`, "date", "end")]);
  const bars = kinds.map((kind, place) => {
    const error = errors[place], tall = error === null ? high : Math.max(kind === "none" ? 0 : 2, top + high - y(error));
    return shape("rect", { class: `part ${kind}`, x: left + place * part, y: top + high - tall, width: Math.max(1, part - (part > 4 ? 1 : 0)), height: tall }, partTitle(grid, place));
  });
  const points = allowed.flatMap((limit, place) => (limit > 0 ? [`${left + place * part},${y(limit)} ${left + (place + 1) * part},${y(limit)}`] : [])).join(" ");
  return drawing(left + wide + 10, top + high + 20, caption, ...lines, ...bars, shape("polyline", { class: "limit", points }),
    textAt(left, top + high + 14, "element 0"), textAt(left + wide, top + high + 14, String(width - 1), "date", "end"));
}
function errorSquares(grid, kinds, caption) {
  const { columns: across, rows: down, errors, allowed } = grid, square = Math.min(20, Math.floor(560 / across));
  // The darker, the larger beside what is allowed: three decades beyond it, and all below it.
  const dark = (place) => (kinds[place] === "beyond" ? 0.45 + 0.55 * Math.min(1, Math.log10(allowed[place] ? errors[place] / allowed[place] : 1000) / 3) : kinds[place] === "within" ? 0.25 + 0.5 * (errors[place] / allowed[place]) : 1);
  return drawing(across * square + 2, down * square + 2, caption, ...kinds.map((kind, place) => shape("rect", {
    class: `part ${kind}`, x: 1 + (place % across) * square, y: 1 + Math.floor(place / across) * square, width: square - 1, height: square - 1, "fill-opacity": dark(place).toFixed(2),
  }, partTitle(grid, place))));
}

// --- verdict, noise and cost at some points: releases, or runs. A point is {name, judgement, word, noise, costs}.
// Of these figures, the one that moves most.
function figureOf(points) {
  const spread = COSTS.map((_, place) => {
    const values = points.map(({ costs }) => costs?.[place] ?? null).filter((value) => value !== null);
    return values.length ? (Math.max(...values) + 1) / (Math.min(...values) + 1) : 0;
  });
  return spread.indexOf(Math.max(...spread));
}
const short = (value) => [[1e9, "G"], [1e6, "M"], [1e3, "k"]].reduce((text, [unit, letter]) => text || (value >= unit ? `${size(value / unit)} ${letter}` : ""), "") || size(value);
function lanesOf(points, words, label = words) {
  // The names of the first and of the last point are side by side above them.
  const ends = points.length > 1 ? [points[0].name, points.at(-1).name] : [points[0].name];
  const nameRoom = Math.ceil((6.5 * ends.join(" ").length + 8) / points.length);
  const [left, slot] = [8, Math.max(16, points.length > 1 ? nameRoom : 0, Math.min(44, Math.floor(620 / points.length)))], wide = slot * points.length;
  const which = figureOf(points), costs = points.map(({ costs }) => costs?.[which] ?? null), noises = points.map(({ noise }) => noise ?? null);
  const parts = [], said = [label];
  points.forEach(({ judgement, word, name }, place) => {
    parts.push(shape("rect", { class: `state ${judgement ?? "gone"}`, x: left + place * slot, y: 16, width: slot - 2, height: 16, rx: 3 }, shape("title", {}, `${name}: ${judgement ?? "not there"}${word ? `, ${word}` : ""}`)));
  });
  let top = 40;
  const lane = (values, title, share, name) => {
    if (values.every((value) => value === null)) return;
    parts.push(textAt(left, top + 8, title, "legend"));
    values.forEach((value, place) => {
      if (value === null) return;
      const tall = Math.max(1.5, 30 * share(value));
      parts.push(shape("rect", { class: `bar ${name}`, x: left + place * slot, y: top + 44 - tall, width: slot - 2, height: tall }, shape("title", {}, `${points[place].name}: ${short(value)}`)));
    });
    said.push(title);
    top += 52;
  };
  const [known, loudest] = [costs.filter((value) => value !== null), Math.max(...noises.map((noise) => noise ?? 0))];
  const scale = decadesOf(noises.map((noise) => noise ?? 0));
  if (loudest > 0) lane(noises, `error, at most ${size(loudest)} times the noise (by powers of ten)`, scale.share, "noise");
  const [least, most] = [Math.min(...known), Math.max(...known)];
  if (known.length && most > 0) lane(costs, `${COSTS[which].replace("_", " ")}, ${least === most ? `${short(most)} throughout` : `${short(least)} to ${short(most)}`}`, (value) => value / most, "figure");
  parts.push(textAt(left, 10, points[0].name), ...(points.length > 1 ? [textAt(left + wide - 2, 10, points.at(-1).name, "date", "end")] : []));
  return figure(words, drawing(left + Math.max(wide, 300) + 8, top, said.join("; "), ...parts), [], label);
}
const errorOf = (cell) => tables.numbers[cells.numbers[cell]].max_noise_error;
const pointOf = (cell) => ({ name: reader(cell).title, judgement: state(cell).judgement, word: state(cell).verdict, noise: errorOf(cell), costs: tables.needs[cells.needs[cell]] });
// From release to release of the runtime of a cell.
function byRelease(cell) {
  const same = cellsOf(rowOfCell[cell]).filter((other) => reader(other).runtime === reader(cell).runtime);
  return same.length > 1 && lanesOf(same.map(pointOf), `From release to release of ${reader(cell).runtime}: what happened, the error, and a cost`);
}
// From run to run: a cell, or the worst of several.
const dayOf = (run) => runs[run].replace(/^\d+: as of /, "");
function pointsOfRuns(some) {
  return runs.map((_, run) => {
    const states = some.map((cell) => historyOf(cell)[run]).filter(Boolean), measured = some.map((cell) => tables.measured[cells.measured[cell]]?.[run] ?? []);
    const worst = WORST_OF_RUNS.find((name) => states.some((text) => text.startsWith(`${name}:`)));
    const most = (place) => measured.map((values) => values[place] ?? null).reduce((one, other) => (other === null || (one !== null && one > other) ? one : other), null);
    return { name: dayOf(run), judgement: worst, word: states.length === 1 ? states[0].split(": ")[1] : "", noise: most(0), costs: COSTS.map((_, place) => most(place + 1)) };
  });
}
const byDay = (cell) => runs.length > 1 && lanesOf(pointsOfRuns([cell]), "From run to run: what happened, the error, and a cost");
// Cases as pictures from run to run: what moved most comes first, the others where they are asked for.
const [FEW_CASES, MANY_CASES] = [12, 500];
function drawOverTime(place) {
  // A run that lacks the cell says nothing of it: a new cell has not moved.
  const there = (values) => (values ?? []).filter((value) => value?.length);
  const moves = (values) => new Set(there(values).map((value) => JSON.stringify(value))).size > 1;
  const [otherState, otherNumbers] = [tables.history.map(([states]) => moves(states)), tables.measured.map(moves)];
  const inAll = tables.history.map(([states]) => there(states).length === runs.length);
  const cases = [...Map.groupBy(rows.golden.keys(), (row) => rows.case[row])].map(([, some]) => {
    const own = some.flatMap(cellsOf), moved = own.filter((cell) => otherState[cells.history[cell]] || otherNumbers[cells.measured[cell]]).length;
    return { name: caseOf(some[0]), own, moved, partly: own.filter((cell) => !inAll[cells.history[cell]]).length };
  }).sort((one, other) => other.moved - one.moved);
  const drawn = ({ name, own, moved, partly }) => {
    const words = `${count(moved)} of ${count(own.length)} cells moved${partly ? `, ${count(partly)} not in every run` : ""}; the worst judgement, the largest error and cost of each run`;
    return make("article", {}, make("h4", {}, link(hashOf({ case: name.case }), name.name)), lanesOf(pointsOfRuns(own), words, `${name.name}: ${words}`));
  };
  const first = cases.filter(({ moved }) => moved).slice(0, FEW_CASES), others = cases.slice(first.length, MANY_CASES);
  place.append(...first.map(drawn));
  if (!others.length) return;
  const details = make("details", {}, make("summary", {}, `${count(others.length)} ${first.length ? "other " : ""}${others.length === 1 ? "case" : "cases"}${first.length ? "" : ": no cell moved"}`));
  details.addEventListener("toggle", () => details.append(make("div", { className: "cards" }, ...others.map(drawn))), { once: true });
  place.append(details);
}

// --- a golden in all readers: what happened, what was forecast, and as what a difference is known, each with its source
const ANSWERS = { yes: "yes", "yes, but": "but", unknown: "?", no: "no" };
const answerOf = (text) => Object.keys(ANSWERS).find((answer) => text === answer || text.startsWith(`${answer}: `)) ?? "";
const sourceOf = (id) => {
  const { title, source } = entries[id];
  return ["known as ", make("b", {}, id), `: ${title}; source: `, source.startsWith("https:") ? link(source, source) : source || "the policy's own table"];
};
function stripOf(chosen) {
  const own = inOrder(cellsOf(rowOfCell[chosen]), (cell) => reader(cell).runtime), notes = new Map();
  const noteOf = (key, ...content) => {
    if (!notes.has(key)) notes.set(key, content);
    return String([...notes.keys()].indexOf(key) + 1);
  };
  const line = (name, valueOf) => make("tr", {}, make("th", { scope: "row" }, name), ...own.map((cell) => {
    const [text, className, title] = valueOf(cell), element = make("td", { className, title: title ?? "" }, text);
    element.classList.toggle("chosen", cell === chosen);
    return element;
  }));
  const forecasts = own.map((cell) => tables.more[cells.more[cell]].forecast ?? ""), known = own.map((cell) => issues[state(cell).cause] ?? "");
  const lines = [line("ran", (cell) => [verdicts[state(cell).verdict].symbol, `cell ${state(cell).judgement}`, `${state(cell).judgement}, ${state(cell).verdict}`])];
  if (forecasts.some(Boolean)) {
    lines.push(line("forecast", (cell) => {
      const text = forecasts[own.indexOf(cell)], answer = answerOf(text), reasons = text.slice(answer.length + 2);
      if (!answer) return ["", "none"];
      const ids = [...reasons.matchAll(/\(([a-z0-9][a-z0-9.-]*)\)/g)].map(([, id]) => id).filter((id) => Object.hasOwn(entries, id));
      const note = reasons && noteOf(text, `forecast ${answer}: ${reasons}`, ...(ids.length ? ids.flatMap((id) => ["; ", ...sourceOf(id)]) : ["; source: the bytes of the artifact"]));
      const isWrong = (answer === "yes" && !verdicts[state(cell).verdict].works && state(cell).verdict !== "not_run") || (answer === "no" && verdicts[state(cell).verdict].works);
      return [`${ANSWERS[answer]}${isWrong ? "!" : ""}${note ? ` ${note}` : ""}`, `forecast answer-${ANSWERS[answer] === "?" ? "unknown" : ANSWERS[answer]}`, isWrong ? "the forecast was wrong" : text];
    }));
  }
  if (known.some(Boolean)) {
    lines.push(line("known as", (cell) => {
      const id = known[own.indexOf(cell)];
      return Object.hasOwn(entries, id) ? [noteOf(id, ...sourceOf(id)), "known", id] : ["", "none"];
    }));
  }
  const heads = own.map((cell) => make("th", { scope: "col" }, make("span", {}, reader(cell).title)));
  const caption = `This golden in all runtimes and releases. The first line is what ran, as of ${asOf}.`;
  const table = make("table", { className: "plain strip" }, make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "reader"), ...heads)), make("tbody", {}, ...lines));
  const list = make("ol", { className: "notes" }, ...[...notes.values()].map((content) => make("li", {}, ...content)));
  return figure(caption, table, notes.size ? [list] : []);
}
