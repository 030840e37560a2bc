"use strict";

// Colours follow the reader's system, or the button.
const root = document.documentElement;
const button = document.getElementById("theme");
const system = matchMedia("(prefers-color-scheme: dark)");

function setTheme(isDark) {
  root.dataset.theme = isDark ? "dark" : "light";
  button.textContent = isDark ? "Light" : "Dark";
  document.querySelectorAll(".chart.js-plotly-plot").forEach(draw);
}

button.addEventListener("click", () => setTheme(root.dataset.theme !== "dark"));
system.addEventListener("change", (event) => setTheme(event.matches));

// Charts are drawn when they come into view: a report of all papers has hundreds.
const drawn = new Map();

function figureOf(div) {
  if (!drawn.has(div)) {
    const data = document.querySelector(`script[data-for="${div.id}"]`);
    drawn.set(div, data.textContent);
  }
  return JSON.parse(drawn.get(div));
}

function draw(div) {
  const style = getComputedStyle(root);
  const [ink, line] = ["--ink", "--line"].map((name) => style.getPropertyValue(name).trim());
  const { data, layout } = figureOf(div);
  for (const trace of data) {
    for (const part of [trace.marker, trace.line]) {
      if (part && part.color === "#000000") part.color = ink;
    }
  }
  for (const axis of [layout.xaxis, layout.yaxis]) {
    Object.assign(axis, { gridcolor: line, zerolinecolor: line, linecolor: line, tickcolor: line });
  }
  // On a phone the legend has a line for each series, above the plot.
  const more = div.clientWidth < 500 ? 20 * data.length : 0;
  div.style.minHeight = `${layout.height + more}px`;
  Object.assign(layout, {
    height: layout.height + more,
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: ink, size: 13 },
  });
  return Plotly.react(div, data, layout, {
    responsive: true,
    displaylogo: false,
    toImageButtonOptions: { format: "svg", filename: div.getAttribute("aria-label") },
  });
}

const inView = new IntersectionObserver(
  (entries) => {
    for (const entry of entries) {
      if (entry.isIntersecting) {
        inView.unobserve(entry.target);
        draw(entry.target);
      }
    }
  },
  { rootMargin: "600px" },
);
document.querySelectorAll(".chart").forEach((div) => inView.observe(div));

// What is printed is all there is, in light colours.
let themeBefore = "light";
addEventListener("beforeprint", () => {
  themeBefore = root.dataset.theme;
  document.querySelectorAll("details").forEach((one) => one.toggleAttribute("open", true));
  root.dataset.theme = "light";
  document.querySelectorAll(".chart").forEach(draw);
});
addEventListener("afterprint", () => setTheme(themeBefore === "dark"));

// Tables: a heading sorts, and its second click sorts the other way; the field searches.
function keyOf(row, column) {
  const cell = row.cells[column];
  const text = cell.dataset.key ?? cell.textContent.trim();
  const number = Number.parseFloat(text.replace(/[\u2009 ](?=\d)/g, "").replace("±", ""));
  return { text, number: Number.isNaN(number) ? -Infinity : number };
}

function sort(table, column, isDescending) {
  const body = table.tBodies[0];
  const isNumber = table.tHead.rows[0].cells[column].classList.contains("number");
  const rows = [...body.rows].map((row) => [keyOf(row, column), row]);
  rows.sort(([a], [b]) => {
    const order = isNumber
      ? a.number - b.number || 0
      : a.text.localeCompare(b.text, undefined, { numeric: true });
    return isDescending ? -order : order;
  });
  body.append(...rows.map(([, row]) => row));
  [...table.tHead.rows[0].cells].forEach((cell, idx) => {
    const order = isDescending ? "descending" : "ascending";
    cell.setAttribute("aria-sort", idx === column ? order : "none");
  });
}

for (const box of document.querySelectorAll(".table")) {
  const table = box.querySelector("table");
  [...table.tHead.rows[0].cells].forEach((cell, column) => {
    cell.firstElementChild.addEventListener("click", () => {
      sort(table, column, cell.getAttribute("aria-sort") === "ascending");
    });
  });
  const [field, found] = [box.querySelector("input"), box.querySelector(".found")];
  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of table.tBodies[0].rows) {
      const text = row.textContent.toLowerCase();
      const isFound = words.every((word) => text.includes(word));
      row.hidden = !isFound;
      shown += isFound;
    }
    found.textContent = words.length ? `${shown} found` : "";
  });
}

// A link to what is folded away unfolds it.
function unfold() {
  const target = location.hash && document.getElementById(location.hash.slice(1));
  if (target && target.tagName === "DETAILS") target.open = true;
}
addEventListener("hashchange", unfold);
unfold();
setTheme(system.matches);
