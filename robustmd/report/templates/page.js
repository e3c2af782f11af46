// The page's only script: a click on a heading sorts its table by the column.
const key = (row, i) => row.cells[i].dataset.value ?? row.cells[i].textContent.trim();
const isText = (x) => x === "" || isNaN(x);
const compare = (a, b) => (isText(a) || isText(b) ? a.localeCompare(b) : a - b);
for (const button of document.querySelectorAll("th button"))
  button.addEventListener("click", () => {
    const th = button.closest("th"), i = th.cellIndex;
    const up = (th.ariaSort ?? th.dataset.first) === (th.ariaSort ? "descending" : "ascending");
    for (const other of th.parentNode.cells) other.removeAttribute("aria-sort");
    th.setAttribute("aria-sort", up ? "ascending" : "descending");
    const body = th.closest("table").tBodies[0];
    body.append(...[...body.rows].sort((a, b) => (up ? 1 : -1) * compare(key(a, i), key(b, i))));
  });
