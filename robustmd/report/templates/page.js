// The page's only script: sorts tables, shows chosen methods, reads values off curves.
"use strict";
const all = (where, what) => [...where.querySelectorAll(what)];

// Tables: a click on a heading, or Enter or Space on it, sorts.
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
for (const button of all(document, "th button"))
  button.addEventListener("click", () => sortBy(button.closest("th")));

const isOn = (button) => button.ariaPressed === "true";
function toggled(button, done) {
  button.ariaPressed ??= "true";
  button.addEventListener("click", () => { button.ariaPressed = String(!isOn(button)); done(); });
}

// Methods: rows, runs and curves of those that are on.
for (const group of all(document, ".methods")) {
  const buttons = all(group, "button"), section = group.closest("section");
  const named = all(section, "tbody tr, .run, .keys [data-label], [data-line], [data-band]").map((one) =>
    [one, one.dataset.label ?? one.dataset.line ?? one.dataset.band ?? one.cells[0].textContent]);
  const show = () => {
    for (const [one, label] of named) {
      const its = buttons.find((b) => `${label} `.startsWith(`${b.textContent} `));
      one.classList.toggle("filtered", its !== undefined && !isOn(its));
    }
  };
  for (const button of buttons) toggled(button, show);
  group.hidden = buttons.length < 2;
}

// Figures: an entry of the legend hides its curve, and shows its value where the pointer is.
function points(group) {  // [[x, y], …] in the plane of the image, of a path by steps
  const at = [0, 0], numbers = group.querySelector("path").getAttribute("d").match(/-?[\d.]+/g);
  return numbers.flatMap((step, i) => ((at[i % 2] += Number(step)), i % 2 ? [[...at]] : []));
}
function scale(text) {  // "from to low high linear": a place's value
  const [from, to, low, high, kind] = text.split(" ").map((word, i) => (i < 4 ? Number(word) : word));
  return (place) => {
    const share = (place - from) / (to - from);
    return kind === "log" ? low * (high / low) ** share : low + share * (high - low);
  };
}
const three = (value) =>
  (Math.abs(value) < 1000 ? value.toPrecision(3) : String(Math.round(value))).replace("-", "−");
function readable(svg, keys, place) {
  const [xOf, yOf] = [scale(svg.dataset.x), scale(svg.dataset.y)];
  const [top, bottom] = svg.dataset.y.split(" ").map(Number);
  const lines = all(svg, "[data-line]").map((g) => [g, points(g), keys.get(g.dataset.line)]);
  const cursor = document.createElementNS(svg.namespaceURI, "path");
  cursor.classList.add("cursor");
  svg.append(cursor);
  let at = null;
  const clear = () => {
    at = null;
    cursor.removeAttribute("d");
    place.textContent = "";
    for (const one of keys.values()) one.value.textContent = "";
  };
  const seen = () => lines.filter(([g]) => !g.matches(".off, .filtered"));
  const nearest = (ways, x) => ways.reduce((a, b) => (Math.abs(b[0] - x) < Math.abs(a[0] - x) ? b : a));
  const show = (x) => {
    clear();
    if (!seen().length) return;
    [at] = nearest(seen().map(([, way]) => nearest(way, x)), x);
    cursor.setAttribute("d", `M${at} ${top}V${bottom}`);
    const value = xOf(at);
    place.textContent = `${svg.dataset.name} ${svg.dataset.x.endsWith("log") ? three(value) : Math.round(value)}`;
    for (const [, way, one] of seen()) {
      const [x, y] = nearest(way, at);
      if (Math.abs(x - at) < 0.5) one.value.textContent = three(yOf(y));
    }
  };
  svg.addEventListener("pointermove", (event) =>
    show(new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse()).x));
  svg.addEventListener("pointerleave", clear);
  svg.addEventListener("blur", clear);
  svg.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step === undefined || !seen().length) return;
    event.preventDefault();
    const places = seen()[0][1].map(([x]) => x);
    const i = at === null ? (step > 0 ? -1 : places.length) : places.indexOf(nearest(places.map((x) => [x]), at)[0]);
    show(places[Math.min(Math.max(i + step, 0), places.length - 1)]);
  });
}
for (const figure of all(document, "figure")) {
  const curves = all(figure, "[data-line], [data-band]"), keys = new Map();
  if (!curves.length) continue;
  for (const entry of all(figure, ".keys li")) {
    const label = entry.dataset.label, button = document.createElement("button");
    const own = curves.filter((g) => (g.dataset.line ?? g.dataset.band) === label);
    button.type = "button";
    button.append(...entry.childNodes, " ");
    const value = button.appendChild(document.createElement("b"));
    entry.append(button);
    keys.set(label, { value });
    toggled(button, () => own.forEach((g) => g.classList.toggle("off", !isOn(button))));
    for (const [kind, on] of [["pointerenter", 1], ["focus", 1], ["pointerleave", 0], ["blur", 0]])
      button.addEventListener(kind, () => curves.forEach((g) => g.classList.toggle("faint", on && !own.includes(g))));
  }
  const place = figure.querySelector(".keys").appendChild(document.createElement("li"));
  for (const svg of all(figure, "svg[data-x]")) readable(svg, keys, place);
}
