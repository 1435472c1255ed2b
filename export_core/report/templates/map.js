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
// On a narrow screen a map begins where the newest readers are: older ones are to the left.
for (const room of document.querySelectorAll(".map")) {
  const today = room.querySelector("line.today");
  if (today && room.scrollWidth > room.clientWidth) room.scrollLeft += today.getBoundingClientRect().right - room.getBoundingClientRect().right + 24;
}
