// Colours, ticks and numbers.

// Yellow to green to blue: lightness falls all the way, so that it reads the same without colours.
const RAMP = ["ffffd9", "edf8b1", "c7e9b4", "7fcdbb", "41b6c4", "1d91c0", "225ea8", "253494", "081d58"];
const PAPER = { ramp: RAMP, ink: "#1c2430", soft: "#5d6878", line: "#c9d0d9", zero: "#ffffff", cursor: "#c2410c" };
const NIGHT = {
  ramp: [...RAMP].reverse(), ink: "#e6eaf0", soft: "#9aa5b4", line: "#39424e", zero: "#10151b", cursor: "#fb923c",
};

let printing = false;
const prefersDark = matchMedia("(prefers-color-scheme: dark)");
const theme = () => (prefersDark.matches && !printing ? NIGHT : PAPER);

const shades = new Map();

// 256 colours from the least to the most likely, as [red, green, blue].
function palette(chosen) {
  if (!shades.has(chosen)) {
    const stops = chosen.ramp.map((hex) => [0, 2, 4].map((i) => parseInt(hex.slice(i, i + 2), 16)));
    shades.set(chosen, Array.from({ length: 256 }, (_, k) => {
      const at = (k / 255) * (stops.length - 1), i = Math.min(Math.floor(at), stops.length - 2);
      return stops[i].map((value, j) => Math.round(value + (stops[i + 1][j] - value) * (at - i)));
    }));
  }
  return shades.get(chosen);
}

const clamp = (value, low, high) => Math.max(low, Math.min(high, value));

// The distance of round ticks so that about `wanted` of them fit.
function niceStep(span, wanted) {
  const rough = span / Math.max(1, wanted), power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].find((m) => m * power >= rough * 0.999) * power;
}

function ticks(low, high, wanted, whole) {
  if (!(high > low)) return [low];
  const step = whole ? Math.max(1, niceStep(high - low, wanted)) : niceStep(high - low, wanted);
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++) found.push(k * step);
  return found;
}

// Between powers of ten, or round numbers where the range is short.
function logTicks(low, high, wanted) {
  if (high / low < 20) return ticks(low, high, wanted, false).filter((value) => value > 0);
  const from = Math.ceil(Math.log10(low)), to = Math.floor(Math.log10(high));
  const every = Math.max(1, Math.ceil((to - from + 1) / wanted));
  const found = [];
  for (let k = from; k <= to; k += every) found.push(10 ** k);
  return found.length ? found : [1];
}

function shown(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e-4 && size < 1e6) return String(Number(value.toPrecision(4)));
  return value.toExponential(3).replace("e+", "e");
}

const grouped = (value) => String(value).replace(/\B(?=(\d{3})+(?!\d))/g, ",").replace("-", "\u2212");

function decoded(text, Kind) {
  const raw = atob(text), bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return new Kind(bytes.buffer);
}
