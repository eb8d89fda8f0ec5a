// A heat map on a canvas: rows are inputs from the top down, columns are outputs.

class Heat extends Chart {
  makeSurface() { return document.createElement("canvas"); }

  open() {
    const { rows, columns, step } = this.data;
    this.total = {
      x: Math.floor((columns[1] - columns[0]) / step[1]) + 1,
      y: Math.floor((rows[1] - rows[0]) / step[0]) + 1,
    };
    this.places = decoded(this.data.places, Int32Array);
    this.values = decoded(this.data.values, Float32Array);
    this.starts = [0];
    this.figure.querySelector("button[data-do=likely]").hidden = !this.data.likely;
    for (const count of decoded(this.data.counts, Int32Array)) this.starts.push(this.starts.at(-1) + count);
  }

  // The likely inputs, and the outputs around them.
  showLikely() {
    const { rows, columns, step, likely } = this.data, room = (likely[1] - likely[0]) / 4;
    const at = (value, i) => (value - [columns[0], rows[0]][i]) / step[1 - i];
    this.show({ x0: at(likely[0] - room, 0), x1: at(likely[1] + room, 0) + 1, y0: at(likely[0], 1), y1: at(likely[1], 1) + 1 });
  }

  // Whether a cell lies where the page computes geometric noise.
  noisy(x, s) {
    const { q, table } = this.data;
    return q !== null && (x < table[0] || x > table[1] || s < table[2] || s > table[3]);
  }

  geometric(distance) { return ((1 - this.data.q) / (1 + this.data.q)) * this.data.q ** distance; }

  value(cell) {
    const { rows, columns } = this.data, x = rows[0] + cell.y, s = columns[0] + cell.x;
    if (this.noisy(x, s)) return this.geometric(Math.abs(x - s));
    let low = this.starts[cell.y], high = this.starts[cell.y + 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.places[middle] < cell.x) low = middle + 1;
      else high = middle;
    }
    return low < this.starts[cell.y + 1] && this.places[low] === cell.x ? this.values[low] : 0;
  }

  // Seen from afar a pixel stands for many cells: the likeliest near it is the one that is meant.
  locate(event) {
    const at = super.locate(event), { x0, x1, y0, y1 } = this.view;
    const wide = (1.5 * (x1 - x0)) / this.area.width, tall = (1.5 * (y1 - y0)) / this.area.height;
    if (!at.cell || Math.max(wide, tall) < 1.5) return at;
    let best = at.cell, most = this.value(at.cell);
    for (let r = Math.max(y0, Math.ceil(at.cell.y - tall)); r < y1 && r <= at.cell.y + tall; r++)
      for (let k = this.starts[r]; k < this.starts[r + 1]; k++)
        if (Math.abs(this.places[k] - at.cell.x) <= wide && this.places[k] >= x0 && this.places[k] < x1 && this.values[k] > most) {
          most = this.values[k];
          best = { x: this.places[k], y: r };
        }
    return { ...at, cell: best };
  }

  span(range, step, i) {
    const first = range[0] + i * step, last = Math.min(first + step - 1, range[1]);
    return first === last ? grouped(first) : `${grouped(first)} to ${grouped(last)}`;
  }

  describe(cell) {
    const { rows, columns, step, names, least } = this.data, value = this.value(cell);
    const amount = value ? shown(value) : least ? `below ${least}` : "0";
    const mean = step[0] > 1 ? " (mean of the rows)" : "";
    return [
      `${names[0]} ${this.span(rows, step[0], cell.y)} \u2192 ${names[1]} ${this.span(columns, step[1], cell.x)}`,
      `${names[2]} ${amount}${mean}`,
    ];
  }

  // The likeliest output of the middle row: where the keyboard starts.
  likely() {
    const y = (this.view.y0 + this.view.y1) >> 1;
    let best = { x: (this.view.x0 + this.view.x1) >> 1, y }, most = -1;
    for (let i = this.starts[y]; i < this.starts[y + 1]; i++)
      if (this.values[i] > most) { most = this.values[i]; best = { x: this.places[i], y }; }
    return best;
  }

  // The largest value under every pixel, so that nothing that is there vanishes when seen from afar.
  grid(wide, tall) {
    const { x0, x1, y0, y1 } = this.view, { rows, columns, q } = this.data;
    const found = new Float32Array(wide * tall), across = wide / (x1 - x0), down = tall / (y1 - y0);
    if (q !== null) {
      // First and last input or output under each pixel, and whether all of them are the table's.
      const blocks = (size, scale, start, low, high) => Array.from({ length: size }, (_, i) => {
        const a = Math.floor(i / scale), b = Math.max(a, Math.ceil((i + 1) / scale) - 1);
        return [start + a, start + b, start + a >= low && start + b <= high];
      });
      const { table } = this.data;
      const lines = blocks(tall, down, rows[0] + y0, table[0], table[1]);
      const bins = blocks(wide, across, columns[0] + x0, table[2], table[3]);
      lines.forEach(([a, b, known], j) => bins.forEach(([c, d, inside], i) => {
        if (!known || !inside) found[j * wide + i] = this.geometric(Math.max(0, a - d, c - b));
      }));
    }
    for (let r = y0; r < y1; r++) {
      const j = Math.floor((r - y0) * down) * wide;
      for (let k = this.starts[r]; k < this.starts[r + 1]; k++) {
        const c = this.places[k];
        if (c < x0 || c >= x1) continue;
        const at = j + Math.floor((c - x0) * across);
        if (this.values[k] > found[at]) found[at] = this.values[k];
      }
    }
    return found;
  }

  draw() {
    const width = this.plot.clientWidth || 720, canvas = this.surface, chosen = theme();
    const longest = Math.max(...this.data.rows.map((value) => grouped(value).length));
    const left = Math.max(62, 38 + 7.2 * longest), right = 10, top = 42, bottom = 46, inner = width - left - right;
    const ratio = this.total.y / this.total.x, height = Math.round(clamp(inner * ratio, 240, Math.max(240, inner * 0.86)));
    this.width = width;
    this.area = { left, top, width: inner, height };
    const dots = Math.max(2, devicePixelRatio || 1), full = top + height + bottom;
    canvas.width = width * dots;
    canvas.height = full * dots;
    const pen = canvas.getContext("2d");
    pen.scale(dots, dots);
    pen.font = "12px system-ui, sans-serif";
    this.cells(pen, chosen, dots);
    this.axes(pen, chosen, full);
    this.legend(pen, chosen);
  }

  cells(pen, chosen, dots) {
    const { left, top, width, height } = this.area, { x0, x1, y0, y1 } = this.view;
    const wide = Math.min(x1 - x0, Math.floor(width * dots)), tall = Math.min(y1 - y0, Math.floor(height * dots));
    const values = this.grid(wide, tall), low = this.data.low;
    const zero = [1, 3, 5].map((i) => parseInt(chosen.zero.slice(i, i + 2), 16));
    const image = new ImageData(wide, tall), pixels = new Uint32Array(image.data.buffer);
    const colours = new Uint32Array(new Uint8Array([zero, ...palette(chosen)].flatMap((colour) => [...colour, 255])).buffer);
    for (let i = 0; i < values.length; i++) {
      const share = values[i] > 0 ? 1 - Math.log10(values[i]) / low : -1;
      pixels[i] = colours[share < 0 ? 0 : 1 + Math.min(255, Math.round(share * 255))];
    }
    const small = document.createElement("canvas");
    small.width = wide;
    small.height = tall;
    small.getContext("2d").putImageData(image, 0, 0);
    pen.imageSmoothingEnabled = false;
    pen.drawImage(small, left, top, width, height);
    pen.strokeStyle = chosen.line;
    pen.lineWidth = 1;
    pen.strokeRect(left - 0.5, top - 0.5, width + 1, height + 1);
  }

  axes(pen, chosen, full) {
    const { left, top, width, height } = this.area, { x0, x1, y0, y1 } = this.view;
    const { rows, columns, step, across, down } = this.data;
    const centre = (i, a, b, size) => ((i + 0.5 - a) / (b - a)) * size;
    pen.fillStyle = chosen.soft;
    pen.textAlign = "center";
    pen.textBaseline = "top";
    for (const value of ticks(columns[0] + x0 * step[1], columns[0] + (x1 - 1) * step[1], width / 70, true)) {
      const i = (value - columns[0]) / step[1];
      pen.fillRect(left + centre(i, x0, x1, width) - 0.5, top + height + 1, 1, 4);
      pen.fillText(grouped(value), left + centre(i, x0, x1, width), top + height + 8);
    }
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    for (const value of ticks(rows[0] + y0 * step[0], rows[0] + (y1 - 1) * step[0], height / 40, true)) {
      const i = (value - rows[0]) / step[0];
      pen.fillRect(left - 5, top + centre(i, y0, y1, height) - 0.5, 4, 1);
      pen.fillText(grouped(value), left - 8, top + centre(i, y0, y1, height));
    }
    pen.fillStyle = chosen.ink;
    pen.textAlign = "center";
    pen.textBaseline = "bottom";
    pen.fillText(across, left + width / 2, full - 2);
    pen.save();
    pen.translate(12, top + height / 2);
    pen.rotate(-Math.PI / 2);
    pen.textBaseline = "middle";
    pen.fillText(down, 0, 0);
    pen.restore();
  }

  legend(pen, chosen) {
    const { left, width } = this.area, long = Math.min(220, width * 0.45), x = left + width - long, low = this.data.low;
    palette(chosen).forEach(([r, g, b], i) => {
      pen.fillStyle = `rgb(${r},${g},${b})`;
      pen.fillRect(x + (i / 256) * long, 4, long / 256 + 0.6, 10);
    });
    pen.strokeStyle = chosen.line;
    pen.strokeRect(x - 0.5, 3.5, long + 1, 11);
    pen.fillStyle = chosen.soft;
    pen.textBaseline = "top";
    for (let k = low; k <= 0; k += low < -3 ? 2 : 1) {
      pen.textAlign = k === 0 ? "right" : k === low ? "left" : "center";
      pen.fillText(k === 0 ? "1" : k > -4 ? String(Number((10 ** k).toPrecision(1))) : `1e\u2212${-k}`, x + (1 - k / low) * long, 18);
    }
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    pen.fillStyle = chosen.ink;
    pen.fillText(this.data.names[2], x - 10, 9);
  }

  // A frame around the cell that is pointed at.
  mark(cell) {
    this.ring ||= this.plot.appendChild(Object.assign(document.createElement("div"), { className: "ring", hidden: true }));
    this.ring.hidden = !cell;
    if (!cell) return;
    const box = this.surface.getBoundingClientRect(), scale = box.width / this.width;
    const { x0, x1, y0, y1 } = this.view, { left, top, width, height } = this.area;
    const w = Math.max(3, (scale * width) / (x1 - x0)), h = Math.max(3, (scale * height) / (y1 - y0));
    this.ring.style.left = `${scale * (left + ((cell.x + 0.5 - x0) / (x1 - x0)) * width) - w / 2}px`;
    this.ring.style.top = `${scale * (top + ((cell.y + 0.5 - y0) / (y1 - y0)) * height) - h / 2}px`;
    this.ring.style.width = `${w}px`;
    this.ring.style.height = `${h}px`;
  }
}
