// Curves over whole numbers, as SVG; zoomed along the horizontal axis.

// The namespace of SVG, asked of the browser.
const SVG = new DOMParser().parseFromString("<svg></svg>", "text/html").querySelector("svg").namespaceURI;

const drawn = (name, attributes, text) => {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes || {})) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  return node;
};

class Lines extends Chart {
  makeSurface() { return drawn("svg", {}); }

  open() {
    const { curves, levels, log } = this.data;
    this.total = { x: curves[0].values.length, y: 1 };
    const known = curves.filter((curve) => curve.style !== "area").flatMap((curve) => curve.values);
    let low = log ? 1 : 0, high = log ? 1 : 1e-9;
    for (const value of [...known, ...levels.map((level) => level.value)]) {
      if (value === null || (log && value <= 0)) continue;
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
    this.countsOnly = known.every((value) => value === null || Number.isInteger(value));
    const room = log ? Math.max(1.02, (high / low) ** 0.12) : 1;
    this.range = log ? { low: low / room, high: high * room } : { low, high: high * 1.1 };
    const area = curves.find((curve) => curve.style === "area");
    this.peak = area ? Math.max(1e-300, ...[0].concat(area.values.filter((value) => value !== null))) : 1;
  }

  x(i) { return this.area.left + ((i + 0.5 - this.view.x0) / (this.view.x1 - this.view.x0)) * this.area.width; }

  y(value) {
    const { low, high } = this.range, { top, height } = this.area;
    const share = this.data.log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
    return top + (1 - share) * height;
  }

  place(cell) {
    const box = this.surface.getBoundingClientRect(), scale = box.width / this.width;
    const first = this.data.curves.find((curve) => curve.values[cell.x] !== null);
    const y = first ? this.y(first.values[cell.x]) : this.area.top + this.area.height / 2;
    return { x: box.left + scale * this.x(cell.x), y: box.top + scale * y };
  }

  likely() { return { x: (this.view.x0 + this.view.x1) >> 1, y: 0 }; }

  describe(cell) {
    const { first, step, size, across, curves, levels } = this.data, from = first + cell.x * step;
    const to = Math.min(from + step - 1, first + size - 1);
    return [
      `${across}: ${from === to ? grouped(from) : `${grouped(from)} to ${grouped(to)}`}`,
      ...curves.map((curve) => `${curve.name}: ${curve.values[cell.x] === null ? "does not occur" : shown(curve.values[cell.x])}`),
      ...levels.map((level) => `${level.name}: ${shown(level.value)}`),
    ];
  }

  draw() {
    const width = this.plot.clientWidth || 720, height = clamp(Math.round(width * 0.42), 240, 330);
    const left = 62, right = 14, top = 34, bottom = 46;
    this.width = width;
    this.area = { left, top, width: width - left - right, height: height - top - bottom };
    this.surface.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const clip = `clip-${this.figure.id}`, inner = drawn("g", { "clip-path": `url(#${clip})` });
    const frame = { x: left, y: top, width: this.area.width, height: this.area.height };
    const defs = drawn("defs"), cut = drawn("clipPath", { id: clip });
    cut.append(drawn("rect", frame));
    defs.append(cut);
    this.guide = drawn("g", { class: "guide" });
    this.surface.replaceChildren(defs, drawn("rect", { ...frame, class: "ground" }), ...this.axes(height), inner, this.names(), this.guide);
    this.data.curves.forEach((curve, i) => inner.append(...this.curve(curve, i)));
    for (const level of this.data.levels) {
      const y = this.y(level.value);
      inner.append(drawn("line", { x1: left, x2: width - right, y1: y, y2: y, class: "level" }));
      inner.append(drawn("text", { x: width - right - 6, y: this.data.log && level.value < 1 ? y + 14 : y - 5, class: "level-name", "text-anchor": "end" }, `${level.name} = ${shown(level.value)}`));
    }
  }

  curve(curve, number) {
    const { x0, x1 } = this.view, from = Math.max(0, x0 - 1), to = Math.min(this.total.x, x1 + 1);
    const bottom = this.area.top + this.area.height, class_ = `curve curve-${number % 6}`;
    if (curve.style === "area") {
      let path = `M${this.x(from)} ${bottom}`;
      for (let i = from; i < to; i++) path += `L${this.x(i).toFixed(2)} ${(bottom - ((curve.values[i] || 0) / this.peak) * this.area.height * 0.55).toFixed(2)}`;
      return [drawn("path", { d: `${path}L${this.x(to - 1)} ${bottom}Z`, class: "prior" })];
    }
    if (curve.style === "bars") {
      const wide = Math.max(1, (this.area.width / (x1 - x0)) * 0.8), bars = [];
      for (let i = from; i < to; i++) {
        const y = this.y(curve.values[i] || 0);
        if (curve.values[i]) bars.push(drawn("rect", { x: this.x(i) - wide / 2, y, width: wide, height: bottom - y, class: `dot curve-${number % 6}` }));
      }
      return bars;
    }
    let path = "", pen = false;
    const dots = [], few = x1 - x0 <= 130;
    for (let i = from; i < to; i++) {
      const value = curve.values[i];
      if (value === null || (this.data.log && value <= 0)) { pen = false; continue; }
      const at = `${this.x(i).toFixed(2)} ${this.y(value).toFixed(2)}`;
      path += `${pen ? "L" : "M"}${at}`;
      pen = true;
      if (few) dots.push(drawn("circle", { cx: this.x(i).toFixed(2), cy: this.y(value).toFixed(2), r: 2.2, class: `dot curve-${number % 6}` }));
    }
    return [drawn("path", { d: path || "M0 0", class: class_, ...this.stroke(curve) }), ...dots];
  }

  // Each line is thinner than those below it, with dashes of its own: none is hidden where they coincide.
  stroke(curve) {
    const lines = this.data.curves.filter((other) => other.style !== "area" && other.style !== "bars"), at = lines.indexOf(curve);
    const width = 1.7 + 1.5 * Math.min(lines.length - 1 - at, 3), dash = ["", "7 4", "2 3", "9 3 2 3"][at % 4];
    return { "stroke-width": width, ...(dash && { "stroke-dasharray": dash }) };
  }

  axes(height) {
    const { left, top, width, height: tall } = this.area, { x0, x1 } = this.view, { first, step, across, up, log } = this.data;
    const parts = [], { low, high } = this.range;
    for (const value of log ? logTicks(low, high, tall / 40) : ticks(low, high, tall / 45, this.countsOnly)) {
      const y = this.y(value);
      parts.push(drawn("line", { x1: left, x2: left + width, y1: y, y2: y, class: "rule" }));
      parts.push(drawn("text", { x: left - 8, y: y + 4, class: "tick", "text-anchor": "end" }, shown(value)));
    }
    for (const value of ticks(first + x0 * step, first + (x1 - 1) * step, width / 70, true)) {
      const x = this.x((value - first) / step);
      parts.push(drawn("line", { x1: x, x2: x, y1: top + tall, y2: top + tall + 5, class: "axis" }));
      parts.push(drawn("text", { x, y: top + tall + 18, class: "tick", "text-anchor": "middle" }, grouped(value)));
    }
    parts.push(drawn("line", { x1: left, x2: left + width, y1: top + tall, y2: top + tall, class: "axis" }));
    parts.push(drawn("text", { x: left + width / 2, y: height - 6, class: "title", "text-anchor": "middle" }, across));
    parts.push(drawn("text", { x: 0, y: 0, class: "title", "text-anchor": "middle", transform: `translate(13 ${top + tall / 2}) rotate(-90)` }, up));
    return parts;
  }

  // Which curve is which, above the chart.
  names() {
    const group = drawn("g", {});
    let x = this.area.left;
    this.data.curves.forEach((curve, i) => {
      const area = curve.style === "area";
      const mark = area || curve.style === "bars"
        ? drawn("rect", { x, y: 7, width: 18, height: 10, class: area ? "prior" : `dot curve-${i % 6}` })
        : drawn("line", { x1: x, x2: x + 18, y1: 12, y2: 12, class: `curve curve-${i % 6}`, ...this.stroke(curve) });
      group.append(mark, drawn("text", { x: x + 24, y: 16, class: "tick" }, curve.name));
      x += 40 + 6.4 * curve.name.length;
    });
    return group;
  }

  mark(cell) {
    this.guide.replaceChildren();
    if (!cell || cell.x < this.view.x0 || cell.x >= this.view.x1) return;
    const { top, height } = this.area, x = this.x(cell.x);
    this.guide.append(drawn("line", { x1: x, x2: x, y1: top, y2: top + height }));
    for (const curve of this.data.curves) {
      const value = curve.values[cell.x];
      if (curve.style !== "area" && value !== null && !(this.data.log && value <= 0))
        this.guide.append(drawn("circle", { cx: x, cy: this.y(value), r: 4 }));
    }
  }
}
