// Begins: reads the data, draws every chart, and draws again for paper and for the night.

const KINDS = { heat: Heat, lines: Lines };
const everything = JSON.parse(document.getElementById("data").textContent);
for (const figure of document.querySelectorAll("figure[data-chart]"))
  charts.push(new KINDS[figure.dataset.chart](figure, everything));

for (const choice of document.querySelectorAll("select[data-for]"))
  choice.addEventListener("change", () => {
    const chart = charts.find((item) => item.figure.id === choice.dataset.for);
    chart.load(choice.value);
    const caption = choice.selectedOptions[0].dataset.caption;
    if (caption) chart.figure.querySelector("figcaption").textContent = caption;
  });

const paper = matchMedia("print");
const redraw = (now) => { printing = now; hideTooltip(); for (const chart of charts) chart.draw(); };
addEventListener("beforeprint", () => redraw(true));
addEventListener("afterprint", () => redraw(paper.matches));
paper.addEventListener("change", () => redraw(paper.matches));
prefersDark.addEventListener("change", () => redraw(paper.matches));
addEventListener("keydown", (event) => { if (event.key === "Escape") hideTooltip(); });
