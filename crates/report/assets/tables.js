// Tables: a click on a header sorts, the next turns it round. Rows of a fixed body stay on top.
const key = (row, column) => {
  const cell = row.cells[column];
  const number = cell.dataset.sort;
  return number === undefined ? cell.textContent.trim() : Number(number);
};
const compare = (a, b) => {
  if (typeof a === "number" && typeof b === "number") return a - b;
  if (typeof a === "number") return -1;
  if (typeof b === "number") return 1;
  return a.localeCompare(b, "en", { numeric: true });
};
document.addEventListener("click", event => {
  const th = event.target.closest("table.sortable th");
  if (!th || !event.target.closest("button")) return;
  const down = th.getAttribute("aria-sort") === "ascending";
  for (const other of th.parentElement.cells) other.setAttribute("aria-sort", "none");
  th.setAttribute("aria-sort", down ? "descending" : "ascending");
  for (const body of th.closest("table").tBodies) {
    if (body.classList.contains("fixed")) continue;
    const rows = [...body.rows].map(row => [key(row, th.cellIndex), row]).sort((a, b) => compare(a[0], b[0]));
    body.append(...(down ? rows.reverse() : rows).map(([, row]) => row));
  }
});
// A row is hidden by its table's own filter or by what is shown of the page; either is enough.
const hide = (row, why, wanted) => {
  row.classList.toggle(why, wanted);
  row.hidden = row.classList.contains("filtered") || row.classList.contains("not-shown");
};
document.addEventListener("input", event => {
  const input = event.target.closest("input[data-filters]");
  if (!input) return;
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const body of document.getElementById(input.dataset.filters).tBodies) {
    if (body.classList.contains("fixed")) continue;
    for (const row of body.rows) {
      const text = row.textContent.toLowerCase();
      hide(row, "filtered", !words.every(word => text.includes(word)));
    }
  }
});
