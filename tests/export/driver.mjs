// As driver.c: draws from given words, one draw a line.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const sampler = await import(pathToFileURL(process.argv[2]).href);
const lines = [];
for (const line of readFileSync(0, "latin1").trim().split("\n")) {
  const [x, , ...pairs] = line.split(" ");
  const words = new Map();
  for (let i = 0; i < pairs.length; i += 2) {
    const word = BigInt(pairs[i + 1]);
    words.set(Number(pairs[i]), [Number(word >> 31n), Number(word & 0x7fffffffn)]);
  }
  let asked = 0, released;
  globalThis.looks = 0;
  try {
    released = sampler.draw(Number(x), (place) => {
      asked++;
      if (!words.has(place)) process.exit(2);
      return words.get(place);
    });
  } catch (error) {
    if (!(error instanceof sampler.Undecided || error instanceof RangeError)) throw error;
    released = "-";
  }
  lines.push(`${released} ${asked} ${globalThis.looks}`);
}
process.stdout.write(lines.join("\n") + "\n");
