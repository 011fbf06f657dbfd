"use strict";

/* Blue below zero and orange above, which colour-blind people tell apart, as in the figures. Near
   zero the colours fade into the page, so light and dark pages have a scale each; the one for use
   over anatomy glows instead, as grey is taken. */
const SCALES = {
  light: {
    negative: ["#d6e6f3", "#8fbcdc", "#3584bd", "#165796", "#08306b"],
    positive: ["#fde0c2", "#fba665", "#e0590f", "#ae3b06", "#7f2704"],
    alpha: () => 1,
  },
  dark: {
    negative: ["#16354e", "#1c5f8d", "#2f8fc9", "#76bbe8", "#c4e8ff"],
    positive: ["#4d250b", "#9a4712", "#dd6a1c", "#f2a465", "#ffdfb8"],
    alpha: () => 1,
  },
  anatomy: {
    negative: ["#1f5fae", "#2b7fd0", "#38a6ea", "#6fd0f5", "#c4f1ff"],
    positive: ["#b3381e", "#d8522a", "#f0782f", "#fba83c", "#ffe680"],
    alpha: (t) => 0.4 + 0.6 * Math.sqrt(t),
  },
};
const LEVELS = 256;

function channels(hex) {
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
}

function blend(stops, t) {
  const place = t * (stops.length - 1);
  const below = Math.min(Math.floor(place), stops.length - 2);
  const [from, to] = [channels(stops[below]), channels(stops[below + 1])];
  return from.map((value, k) => Math.round(value + (place - below) * (to[k] - value)));
}

/** Red, green, blue and opacity for each size of an entry, for one sign. */
function ramp(stops, alpha) {
  const table = new Float64Array(LEVELS * 4);
  for (let level = 0; level < LEVELS; level += 1) {
    const t = level / (LEVELS - 1);
    table.set([...blend(stops, t), alpha(t)], level * 4);
  }
  return table;
}

const RAMPS = Object.fromEntries(
  Object.entries(SCALES).map(([name, { negative, positive, alpha }]) => [
    name,
    { negative: ramp(negative, alpha), positive: ramp(positive, alpha) },
  ]),
);

/** Paint one entry over the grey beneath it; zero and what is below the threshold stay clear. */
function paint(pixels, at, value, { ramps, limit, cut, grey }) {
  const size = Math.abs(value);
  const base = grey === null ? 0 : grey;
  const under = grey === null ? 0 : 1;
  if (size === 0 || size < cut) {
    pixels[at] = pixels[at + 1] = pixels[at + 2] = base;
    pixels[at + 3] = 255 * under;
    return;
  }
  const table = value < 0 ? ramps.negative : ramps.positive;
  const level = 4 * Math.min(LEVELS - 1, Math.round((size / limit) * (LEVELS - 1)));
  const alpha = table[level + 3];
  for (let k = 0; k < 3; k += 1) {
    pixels[at + k] = under ? alpha * table[level + k] + (1 - alpha) * base : table[level + k];
  }
  pixels[at + 3] = under ? 255 : 255 * alpha;
}

/** Whether the page is dark now, by the reader's button or else by the system. */
function pageIsDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}
