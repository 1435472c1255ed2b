// The map is one tab stop: arrow keys move from square to square.
const ARROWS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
for (const drawing of document.querySelectorAll(".map svg")) {
  const squares = new Map([...drawing.querySelectorAll("a.square")].map((square) => [`${square.dataset.row} ${square.dataset.column}`, square]));
  drawing.addEventListener("keydown", (event) => {
    const square = event.target.closest("a.square"), [down, right] = ARROWS[event.key] ?? [];
    if (!square || down === undefined) return;
    let [row, column] = [Number(square.dataset.row), Number(square.dataset.column)], next = null;
    // Not every writer was read by every reader.
    for (let step = 0; step < squares.size && !next; step += 1) next = squares.get(`${(row += down)} ${(column += right)}`);
    event.preventDefault();
    if (!next) return;
    square.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  });
}
// Where a drawing is scrolled, its names stay: they are a group on top of it.
for (const room of document.querySelectorAll(".map, .scroll")) {
  const drawing = room.querySelector("svg"), names = room.querySelector(".names");
  room.addEventListener("scroll", () => {
    names?.setAttribute("transform", `translate(${((room.scrollLeft * drawing.viewBox.baseVal.width) / drawing.clientWidth).toFixed(1)} 0)`);
  }, { passive: true });
}
// On a narrow screen a drawing begins where the newest readers are: older ones are to the left. What ends later than
// today is to the right of it, and beside the names.
for (const room of document.querySelectorAll(".map, .scroll")) {
  const today = room.querySelector("line.today"), names = room.querySelector(".names");
  if (room.scrollWidth <= room.clientWidth) continue;
  const middle = today?.getBoundingClientRect(), { left, right } = room.getBoundingClientRect();
  if (today && room.matches(".scroll")) room.scrollLeft += middle.left - (names?.getBoundingClientRect().right ?? left) - 48;
  else room.scrollLeft += middle ? middle.right - right + 24 : room.scrollWidth;
  room.dispatchEvent(new Event("scroll")); // the browser's own comes later, and what follows asks where the names are
  // Of a run with few readers, today may be far from the newest one: the map begins with that, and not with nothing.
  const squares = [...room.querySelectorAll("a.square")].map((square) => square.getBoundingClientRect());
  const edge = names?.getBoundingClientRect().right ?? left, newest = Math.max(...squares.map((square) => square.right));
  if (!squares.length || squares.some((square) => square.left >= edge && square.right <= right)) continue;
  room.scrollLeft += newest - (edge + right) / 2;
  room.dispatchEvent(new Event("scroll"));
}
// What fails beyond an edge is counted: on a narrow screen the map begins with readers that may all be green.
for (const room of document.querySelectorAll(".map")) {
  const failing = [...room.querySelectorAll("[data-fails]")], known = [...room.querySelectorAll("[data-known]")], names = room.querySelector(".names");
  const sides = [(left) => left < names.getBoundingClientRect().right, (left, right) => right > room.getBoundingClientRect().right].map((isBeyond, side) => {
    const button = make("button", { type: "button" });
    const beyond = (squares) => squares.filter((square) => { const { left, right } = square.getBoundingClientRect(); return isBeyond(left, right); });
    // The nearest: the last one to the left, the first one to the right.
    const byColumn = (one, other) => (other.dataset.column - one.dataset.column) * (side ? -1 : 1);
    button.addEventListener("click", () => {
      const [nearest] = [failing, known].flatMap((squares) => beyond(squares).sort(byColumn));
      const { left } = nearest.getBoundingClientRect(), middle = room.getBoundingClientRect();
      room.scrollLeft += left - (middle.left + middle.right) / 2;
    });
    return { button, beyond };
  });
  const columnsOf = (squares) => new Set(squares.map((square) => square.dataset.column));
  const update = () => {
    const isScrolled = room.scrollWidth > room.clientWidth;
    for (const [side, { button, beyond }] of sides.entries()) {
      const fails = columnsOf(isScrolled ? beyond(failing) : []);
      const others = [...columnsOf(isScrolled ? beyond(known) : [])].filter((column) => !fails.has(column)).length;
      const columns = (size) => `${count(size)} ${size === 1 ? "column" : "columns"} with`;
      const words = fails.size ? `${columns(fails.size)} failures${others ? `, ${count(others)} with known ones` : ""}` : `${columns(others)} known failures`;
      button.hidden = !fails.size && !others;
      button.className = fails.size ? "" : "is-known";
      button.textContent = side ? `${words} →` : `← ${words}`;
    }
  };
  // A map that began beside all of its failures would look green: it begins with the nearest of them.
  const hidden = room.scrollWidth > room.clientWidth ? sides.map(({ beyond }) => beyond(failing).length) : [0, 0];
  if (failing.length && hidden[0] + hidden[1] === failing.length) {
    sides[hidden[0] ? 0 : 1].button.click();
    room.dispatchEvent(new Event("scroll"));
  }
  room.before(make("p", { className: "beyond screen" }, ...sides.map(({ button }) => button)));
  room.addEventListener("scroll", update, { passive: true });
  addEventListener("resize", update);
  update();
}
