// Sorts a table by a click on a heading, or by Enter or Space on it: the page's only script.
"use strict";
const key = (row, i) => row.cells[i].dataset.value ?? row.cells[i].textContent.trim();
function compare(a, b) {
  if (a === "" || b === "") return (a === "") - (b === "");
  const x = Number(a), y = Number(b);
  return Number.isNaN(x) || Number.isNaN(y) ? a.localeCompare(b) : x - y;
}
function sortBy(th) {
  const up = th.ariaSort === "ascending" ? -1 : th.ariaSort === "descending" ? 1
    : th.dataset.first === "descending" ? -1 : 1;
  for (const other of th.parentNode.cells) other.removeAttribute("aria-sort");
  th.setAttribute("aria-sort", up > 0 ? "ascending" : "descending");
  const body = th.closest("table").tBodies[0], i = th.cellIndex;
  const rows = [...body.rows].sort((a, b) => {
    const x = key(a, i), y = key(b, i);
    return x === "" || y === "" ? compare(x, y) : up * compare(x, y);
  });
  body.append(...rows);
}
for (const button of document.querySelectorAll("th button"))
  button.addEventListener("click", () => sortBy(button.closest("th")));
