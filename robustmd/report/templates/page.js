// The page's only script: a click on a heading sorts its table by the column.
const number = (text) => parseFloat(text.replace("−", "-").replace("≥ ", ""));
const compare = (a, b) => (isNaN(number(a)) || isNaN(number(b)) ? a.localeCompare(b) : number(a) - number(b));
for (const button of document.querySelectorAll("th button"))
  button.addEventListener("click", () => {
    const th = button.closest("th"), i = th.cellIndex, up = th.ariaSort === "descending";
    for (const other of th.parentNode.cells) other.removeAttribute("aria-sort");
    th.setAttribute("aria-sort", up ? "ascending" : "descending");
    const body = th.closest("table").tBodies[0], text = (row) => row.cells[i].textContent.trim();
    body.append(...[...body.rows].sort((a, b) => (up ? 1 : -1) * compare(text(a), text(b))));
  });
