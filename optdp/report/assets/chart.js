// What every chart does: a view that is zoomed with the wheel, the buttons, a box or keys, and a tooltip.

const tooltip = document.getElementById("tooltip");
const charts = [];
let scrolled = -1e9;
addEventListener("scroll", () => { scrolled = performance.now(); hideTooltip(); }, { passive: true });

function showTooltip(lines, x, y) {
  tooltip.replaceChildren(...lines.map((line, i) => {
    const part = document.createElement(i ? "div" : "strong");
    part.textContent = line;
    return part;
  }));
  tooltip.hidden = false;
  const { width, height } = tooltip.getBoundingClientRect(), room = document.documentElement;
  const left = x + 14 + width > room.clientWidth ? x - 14 - width : x + 14;
  const top = y + 14 + height > room.clientHeight ? y - 14 - height : y + 14;
  tooltip.style.left = `${Math.max(4, left)}px`;
  tooltip.style.top = `${Math.max(4, top)}px`;
}

function hideTooltip() {
  tooltip.hidden = true;
  for (const chart of charts) chart.mark(null);
}

class Chart {
  constructor(figure, data) {
    this.figure = figure;
    this.all = data;
    this.plot = figure.querySelector(".plot");
    this.surface = this.makeSurface();
    this.surface.setAttribute("tabindex", "0");
    this.surface.setAttribute("role", "application");
    this.surface.setAttribute("aria-label", `${figure.dataset.label}. Arrows move, plus and minus zoom, 0 shows all.`);
    this.plot.append(this.surface);
    this.frame = document.createElement("div");
    this.frame.className = "frame";
    this.frame.hidden = true;
    this.plot.append(this.frame);
    this.cursor = null;
    this.listen();
    this.load(figure.dataset.key);
    let width = 0;
    new ResizeObserver(() => requestAnimationFrame(() => {
      if (this.plot.clientWidth && this.plot.clientWidth !== width) {
        width = this.plot.clientWidth;
        this.draw();
      }
    })).observe(this.plot);
  }

  // Shows the data of that name, all of it.
  load(key) {
    this.data = this.all[key];
    this.open();
    this.cursor = null;
    this.reset();
  }

  reset() { this.show({ x0: 0, x1: this.total.x, y0: 0, y1: this.total.y }); }

  // A view is a range of cells in each direction: x0 <= x < x1 and y0 <= y < y1, whole numbers.
  show(view) {
    const side = (a, b, size) => {
      const length = clamp(Math.round(b - a), Math.min(2, size), size), start = clamp(Math.round(a), 0, size - length);
      return [start, start + length];
    };
    const [x0, x1] = side(view.x0, view.x1, this.total.x), [y0, y1] = side(view.y0, view.y1, this.total.y);
    this.view = { x0, x1, y0, y1 };
    this.figure.dataset.view = [x0, x1, y0, y1].join(" ");
    const whole = x1 - x0 === this.total.x && y1 - y0 === this.total.y;
    for (const button of this.figure.querySelectorAll("button[data-do]"))
      if (button.dataset.do === "out" || button.dataset.do === "all") button.setAttribute("aria-disabled", String(whole));
    this.draw();
  }

  get whole() { return this.view.x1 - this.view.x0 === this.total.x && this.view.y1 - this.view.y0 === this.total.y; }

  zoom(factor, at) {
    const { x0, x1, y0, y1 } = this.view;
    const part = at || { x: 0.5, y: 0.5 };
    const side = (a, b, share) => {
      const length = factor < 1 ? Math.min((b - a) * factor, b - a - 1) : Math.max((b - a) * factor, b - a + 1);
      return [a + share * (b - a - length), a + share * (b - a - length) + length];
    };
    const [nx0, nx1] = side(x0, x1, part.x), [ny0, ny1] = side(y0, y1, part.y);
    this.show({ x0: nx0, x1: nx1, y0: ny0, y1: ny1 });
  }

  // Where a mouse event is: in the chart's own pixels, as shares of the view, and as a cell.
  locate(event) {
    const box = this.surface.getBoundingClientRect(), scale = this.width / box.width;
    const px = (event.clientX - box.left) * scale, py = (event.clientY - box.top) * scale;
    const { left, top, width, height } = this.area, x = (px - left) / width, y = (py - top) / height;
    const inside = x >= 0 && x < 1 && y >= 0 && y < 1;
    const { x0, x1, y0, y1 } = this.view;
    const cell = inside ? { x: x0 + Math.floor(x * (x1 - x0)), y: y0 + Math.floor(y * (y1 - y0)) } : null;
    return { px, py, x: clamp(x, 0, 1), y: clamp(y, 0, 1), cell };
  }

  // A cell's box on the screen.
  place(cell) {
    const box = this.surface.getBoundingClientRect(), scale = box.width / this.width;
    const { x0, x1, y0, y1 } = this.view, { left, top, width, height } = this.area;
    return {
      x: box.left + scale * (left + ((cell.x + 0.5 - x0) / (x1 - x0)) * width),
      y: box.top + scale * (top + ((cell.y + 0.5 - y0) / (y1 - y0)) * height),
    };
  }

  listen() {
    const surface = this.surface;
    let from = null;
    surface.addEventListener("pointermove", (event) => {
      const at = this.locate(event);
      if (from && Math.hypot(at.px - from.px, at.py - from.py) > 5) this.drawBox(from, at);
      this.point(at.cell, event.clientX, event.clientY);
    });
    surface.addEventListener("pointerdown", (event) => {
      const at = this.locate(event);
      this.point(at.cell, event.clientX, event.clientY);
      if (event.pointerType === "mouse" && event.button === 0 && at.cell) {
        from = at;
        surface.setPointerCapture(event.pointerId);
      }
    });
    const end = (event) => {
      this.frame.hidden = true;
      if (!from) return;
      const at = this.locate(event), start = from;
      from = null;
      if (event.type === "pointerup" && Math.hypot(at.px - start.px, at.py - start.py) > 5) this.showBox(start, at);
    };
    surface.addEventListener("pointerup", end);
    surface.addEventListener("pointercancel", end);
    surface.addEventListener("pointerleave", hideTooltip);
    surface.addEventListener("dblclick", () => this.reset());
    surface.addEventListener("wheel", (event) => {
      const at = this.locate(event), passing = performance.now() - scrolled < 300;
      if (!at.cell || passing || (event.deltaY > 0 && this.whole)) return; // the page scrolls on
      event.preventDefault();
      this.zoom(event.deltaY < 0 ? 0.8 : 1.25, at);
      this.point(this.locate(event).cell, event.clientX, event.clientY);
    }, { passive: false });
    surface.addEventListener("keydown", (event) => this.key(event));
    surface.addEventListener("blur", hideTooltip);
    for (const button of this.figure.querySelectorAll("button[data-do]"))
      button.addEventListener("click", () => {
        const what = button.dataset.do;
        if (what === "all") this.reset();
        else if (what === "likely") this.showLikely();
        else this.zoom(what === "in" ? 0.6 : 1 / 0.6);
      });
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = event.shiftKey ? 10 : 1, moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    const move = moves[event.key];
    if (move && (move[1] === 0 || this.total.y > 1)) {
      const { x0, x1, y0, y1 } = this.view;
      const now = this.cursor || this.likely();
      const cell = this.cursor
        ? { x: clamp(now.x + step * move[0], 0, this.total.x - 1), y: clamp(now.y + step * move[1], 0, this.total.y - 1) }
        : now;
      const dx = cell.x < x0 ? cell.x - x0 : cell.x >= x1 ? cell.x - x1 + 1 : 0;
      const dy = cell.y < y0 ? cell.y - y0 : cell.y >= y1 ? cell.y - y1 + 1 : 0;
      if (dx || dy) this.show({ x0: x0 + dx, x1: x1 + dx, y0: y0 + dy, y1: y1 + dy });
      const at = this.place(cell);
      this.point(cell, at.x, at.y);
    } else if (event.key === "+" || event.key === "=") this.zoom(0.6, this.share());
    else if (event.key === "-" || event.key === "_") this.zoom(1 / 0.6, this.share());
    else if (event.key === "0" || event.key === "Home") this.reset();
    else if (event.key === "Escape") { this.cursor = null; hideTooltip(); return; }
    else return;
    event.preventDefault();
  }

  // Where the cursor is within the view, for zooming around it.
  share() {
    if (!this.cursor) return null;
    const { x0, x1, y0, y1 } = this.view, { x, y } = this.cursor;
    return { x: clamp((x + 0.5 - x0) / (x1 - x0), 0, 1), y: clamp((y + 0.5 - y0) / (y1 - y0), 0, 1) };
  }

  point(cell, x, y) {
    if (!cell) { hideTooltip(); return; }
    this.cursor = cell;
    for (const chart of charts) chart.mark(chart === this ? cell : null);
    showTooltip(this.describe(cell), x, y);
  }

  drawBox(from, to) {
    const box = this.surface.getBoundingClientRect(), scale = box.width / this.width;
    const { left, top, width, height } = this.area, flat = this.total.y === 1;
    const x = [from.x, to.x].sort((a, b) => a - b), y = flat ? [0, 1] : [from.y, to.y].sort((a, b) => a - b);
    this.frame.hidden = false;
    this.frame.style.left = `${scale * (left + x[0] * width)}px`;
    this.frame.style.top = `${scale * (top + y[0] * height)}px`;
    this.frame.style.width = `${scale * (x[1] - x[0]) * width}px`;
    this.frame.style.height = `${scale * (y[1] - y[0]) * height}px`;
  }

  showBox(from, to) {
    const { x0, x1, y0, y1 } = this.view, flat = this.total.y === 1;
    const x = [from.x, to.x].sort((a, b) => a - b), y = flat ? [0, 1] : [from.y, to.y].sort((a, b) => a - b);
    const floor = (start, size, share) => Math.floor(start + share * size), ceil = (start, size, share) => Math.ceil(start + share * size);
    this.show({
      x0: floor(x0, x1 - x0, x[0]), x1: ceil(x0, x1 - x0, x[1]),
      y0: floor(y0, y1 - y0, y[0]), y1: ceil(y0, y1 - y0, y[1]),
    });
  }
}
