"use strict";

const LONGEST_SIDE_RATIO = 3;
// Of all slices together, in rem: the viewer fits on a screen.
const TALLEST = 36;
const NARROWEST = 20;

// Left and right, posterior and anterior, inferior and superior.
const SIDES = { x: ["L", "R"], y: ["P", "A"], z: ["I", "S"] };

/** A number for people; the exact one is beside it. */
function short(value, digits = 4) {
  if (value === 0) return "0";
  const text = Number(value.toPrecision(digits)).toString();
  return text.replace("-", "\u2212");
}

/** Linked slices through a coefficient, with a crosshair. */
class Viewer {
  constructor(root) {
    const data = JSON.parse(root.querySelector("script[type='application/json']").textContent);
    this.root = root;
    this.coefficient = new Coefficient(data);
    this.modes = data.modes;
    this.isMatrix = data.shape.length === 2;
    this.background = data.background === null ? null : bytes(data.background);
    this.limits = data.limits;
    this.index = data.peak.slice();
    this.shown = data.shown;
    this.isAnatomical = data.anatomical;
    this.term = null;
    this.share = 0;
    this.showsBackground = this.background !== null;
    this.extents = displayExtents(data.modes, data.shape);
    this.panels = [...root.querySelectorAll(".slice")].map((figure, k) => this.panel(figure, k));
    this.connectControls();
    this.arrange();
    document.addEventListener("themechange", () => this.refresh());
  }

  /* Panels */

  panel(figure, k) {
    const canvas = figure.querySelector("canvas");
    const panel = { figure, canvas, k, caption: figure.querySelector("figcaption") };
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      this.point(panel, event);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (event.buttons & 1) this.point(panel, event);
    });
    canvas.addEventListener("keydown", (event) => this.press(panel, event));
    return panel;
  }

  /** Which mode goes to the right, which goes up (or down, in a matrix), which is cut through. */
  modesOf(panel) {
    const [a, b, c] = this.shown;
    if (this.isMatrix) return { h: a, v: b, through: null };
    return [{ h: a, v: c, through: b }, { h: b, v: c, through: a }, { h: a, v: b, through: c }][
      panel.k
    ];
  }

  /** Whether a mode's indices run against the direction of the screen. */
  isFlipped(mode, isVertical) {
    const [first, last] = ends(this.modes[mode].coords);
    const descends = typeof first === "number" && last < first;
    return isVertical && !this.isMatrix ? !descends : descends;
  }

  place(mode, index, isVertical) {
    return this.isFlipped(mode, isVertical) ? this.coefficient.shape[mode] - 1 - index : index;
  }

  /** Give panels their sizes and names, after a change of the modes shown. */
  arrange() {
    this.shareSpace();
    for (const panel of this.panels) {
      const { h, v, through } = this.modesOf(panel);
      panel.canvas.width = this.coefficient.shape[h];
      panel.canvas.height = this.coefficient.shape[v];
      panel.figure.style.setProperty("--width", this.extents[h]);
      panel.figure.style.setProperty("--height", this.extents[v]);
      const name = `Slice: ${this.modes[h].name} to the right, ${this.modes[v].name} ${
        this.isMatrix ? "down" : "up"
      }`;
      const cut = through === null ? "" : `, cut through ${this.modes[through].name}`;
      panel.canvas.setAttribute("aria-label", name + cut);
      if (this.isAnatomical) this.nameSides(panel);
    }
    this.refresh();
  }

  /** Write at the edges of a slice of the body which side is which. */
  nameSides(panel) {
    const { h, v } = this.modesOf(panel);
    const [left, right] = SIDES[this.modes[h].name];
    const [below, above] = SIDES[this.modes[v].name];
    const ends = { left, right, below, above };
    panel.figure.querySelectorAll(".side").forEach((side) => {
      side.textContent = ends[side.dataset.side];
    });
  }

  /** Lay slices out at one scale: those with a common mode beside or below each other. */
  shareSpace() {
    const [a, b, c] = this.shown.map((mode) => this.extents[mode]);
    const [columns, height] = this.isMatrix ? [[a], b] : [[a, b], b + c];
    const width = columns.reduce((sum, share) => sum + share, 0);
    const style = this.root.style;
    style.setProperty("--columns", columns.map((share) => `minmax(0, ${share}fr)`).join(" "));
    const board = Math.min(60, (TALLEST * width) / height);
    style.setProperty("--slice", `${board}rem`);
    style.setProperty("--board", `${Math.max(board, NARROWEST)}rem`);
  }

  point(panel, event) {
    const { h, v } = this.modesOf(panel);
    const box = panel.canvas.getBoundingClientRect();
    const across = (event.clientX - box.left) / box.width;
    const down = (event.clientY - box.top) / box.height;
    for (const [mode, share, isVertical] of [[h, across, false], [v, down, true]]) {
      const size = this.coefficient.shape[mode];
      const cell = Math.max(0, Math.min(size - 1, Math.floor(share * size)));
      this.index[mode] = this.place(mode, cell, isVertical);
    }
    this.refresh();
  }

  press(panel, event) {
    const { h, v, through } = this.modesOf(panel);
    const moves = {
      ArrowLeft: [h, -1, false],
      ArrowRight: [h, 1, false],
      ArrowUp: [v, -1, true],
      ArrowDown: [v, 1, true],
      PageUp: [through, 1, null],
      PageDown: [through, -1, null],
    };
    const move = moves[event.key];
    if (!move || move[0] === null || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    const [mode, way, isVertical] = move;
    const flipped = isVertical === null ? false : this.isFlipped(mode, isVertical);
    this.moveTo(mode, this.index[mode] + (flipped ? -way : way) * (event.shiftKey ? 10 : 1));
  }

  moveTo(mode, index) {
    const whole = Number.isFinite(index) ? Math.round(index) : 0;
    this.index[mode] = Math.max(0, Math.min(this.coefficient.shape[mode] - 1, whole));
    this.refresh();
  }

  /* Controls */

  connectControls() {
    this.ranges = [...this.root.querySelectorAll("input[type=range][data-mode]")];
    this.boxes = [...this.root.querySelectorAll("input[type=number][data-mode]")];
    this.places = [...this.root.querySelectorAll(".coordinate")];
    this.output = this.root.querySelector("output.entry");
    this.ranges.forEach((range, mode) => {
      range.addEventListener("input", () => this.moveTo(mode, range.valueAsNumber));
    });
    this.boxes.forEach((box, mode) => {
      box.addEventListener("change", () => this.moveTo(mode, box.valueAsNumber));
    });
    this.connectThreshold();
    this.on("button.largest", "click", () => {
      this.index = this.coefficient.largest(this.term);
      this.refresh();
    });
    this.on("select.term", "change", (select) => {
      this.term = select.value === "" ? null : Number(select.value);
      this.refresh();
    });
    this.on("input.anatomy", "change", (box) => {
      this.showsBackground = box.checked;
      this.root.classList.toggle("with-anatomy", box.checked);
      this.refresh();
    });
    this.selects = [...this.root.querySelectorAll("select.shown")];
    this.selects.forEach((select, k) => {
      select.addEventListener("change", () => this.show(k, Number(select.value)));
    });
  }

  on(selector, event, act) {
    const element = this.root.querySelector(selector);
    if (element) element.addEventListener(event, () => act(element));
  }

  connectThreshold() {
    const range = this.root.querySelector("input.threshold");
    const label = this.root.querySelector("output.share");
    range.addEventListener("input", () => {
      this.share = range.valueAsNumber / 100;
      label.textContent = `${range.value} %`;
      this.refresh();
    });
  }

  /** Show a mode in a place; if it was in another one, the two change places. */
  show(k, mode) {
    const before = this.shown.indexOf(mode);
    if (before >= 0) this.shown[before] = this.shown[k];
    this.shown[k] = mode;
    this.selects.forEach((select, i) => {
      select.value = String(this.shown[i]);
    });
    this.arrange();
  }

  /* Drawing */

  /** Draw once for all changes of a frame. */
  refresh() {
    this.tell();
    if (this.isWaiting) return;
    this.isWaiting = true;
    requestAnimationFrame(() => {
      this.isWaiting = false;
      this.draw();
    });
  }

  style() {
    const theme = pageIsDark() ? "dark" : "light";
    const limit = this.limits[this.term === null ? 0 : this.term + 1] || 1;
    return {
      ramps: RAMPS[this.showsBackground ? "anatomy" : theme],
      limit,
      cut: this.share * limit,
      grey: null,
    };
  }

  draw() {
    const began = performance.now();
    const style = this.style();
    this.panels.forEach((panel) => this.drawPanel(panel, { ...style }));
    this.drawBar({ ...style });
    performance.clearMeasures("redraw");
    performance.measure("redraw", { start: began, end: performance.now() });
  }

  drawPanel(panel, style) {
    const { h, v } = this.modesOf(panel);
    const [across, down] = [this.coefficient.shape[h], this.coefficient.shape[v]];
    const values = this.coefficient.slice(h, v, this.index, this.term);
    const context = panel.canvas.getContext("2d");
    const image = context.createImageData(across, down);
    const [turnsH, turnsV] = [this.isFlipped(h, false), this.isFlipped(v, true)];
    const grey = this.showsBackground ? this.greys(h, v) : null;
    for (let j = 0; j < down; j += 1) {
      const row = (turnsV ? down - 1 - j : j) * across;
      for (let i = 0; i < across; i += 1) {
        if (grey !== null) style.grey = grey(i, j);
        paint(image.data, 4 * (row + (turnsH ? across - 1 - i : i)), values[j * across + i], style);
      }
    }
    context.putImageData(image, 0, 0);
    this.drawHair(panel);
  }

  /** The anatomy beneath a slice, by the indices of its two modes. */
  greys(h, v) {
    const strides = this.coefficient.strides;
    const origin = this.coefficient.place(this.index.map((i, m) => (m === h || m === v ? 0 : i)));
    return (i, j) => this.background[origin + i * strides[h] + j * strides[v]];
  }

  drawHair(panel) {
    const { h, v, through } = this.modesOf(panel);
    const share = (mode, isVertical) =>
      (this.place(mode, this.index[mode], isVertical) + 0.5) / this.coefficient.shape[mode];
    panel.figure.style.setProperty("--x", share(h, false));
    panel.figure.style.setProperty("--y", share(v, true));
    const arrow = this.isMatrix ? "\u2193" : "\u2191";
    const axes = `${this.modes[h].name} \u2192 \u2002 ${this.modes[v].name} ${arrow}`;
    const cut = document.createElement("strong");
    cut.textContent = through === null ? "" : this.where(through);
    panel.caption.replaceChildren(...(through === null ? [axes] : [cut, axes]));
  }

  drawBar(style) {
    const canvas = this.root.querySelector("canvas.bar");
    const context = canvas.getContext("2d");
    const image = context.createImageData(canvas.width, 1);
    style.grey = this.showsBackground ? 96 : null;
    for (let i = 0; i < canvas.width; i += 1) {
      const value = style.limit * ((2 * i) / (canvas.width - 1) - 1);
      paint(image.data, 4 * i, value, style);
    }
    context.putImageData(image, 0, 0);
    this.root.querySelector(".bar-low").textContent = short(-style.limit, 3);
    this.root.querySelector(".bar-high").textContent = short(style.limit, 3);
  }

  /* Words and numbers */

  where(mode) {
    const { name } = this.modes[mode];
    return `${name} = ${this.coordinate(mode)}`;
  }

  /** The coordinate of a mode at the crosshair, with its unit; the index if it has none. */
  coordinate(mode) {
    const { coords, unit } = this.modes[mode];
    if (coords === null) return String(this.index[mode]);
    const here = coords[this.index[mode]];
    return `${typeof here === "number" ? short(here) : here}${unit ? ` ${unit}` : ""}`;
  }

  tell() {
    const value = this.coefficient.at(this.index, this.term);
    const what = this.term === null ? "coef_" : `term ${this.term}`;
    this.output.dataset.value = value.toPrecision(17);
    this.output.dataset.index = JSON.stringify(this.index);
    const number = document.createElement("b");
    number.textContent = String(value).replaceAll("-", "\u2212");
    this.output.replaceChildren(`${what}[${this.index.join(", ")}] =`, number);
    this.ranges.forEach((range, mode) => {
      range.value = String(this.index[mode]);
      range.setAttribute("aria-valuetext", this.where(mode));
      this.boxes[mode].value = String(this.index[mode]);
      this.places[mode].textContent =
        this.modes[mode].coords === null ? "" : this.coordinate(mode);
    });
  }
}

/** Lengths of the modes on the screen: true to scale where all have one unit. */
function displayExtents(modes, shape) {
  const isNumeric = ({ coords, unit }) => coords !== null && unit && typeof coords[0] === "number";
  const sameUnit = modes.every((mode) => isNumeric(mode) && mode.unit === modes[0].unit);
  if (sameUnit) return modes.map(({ coords }, m) => shape[m] * spacing(coords));
  const longest = Math.max(...shape);
  return shape.map((size) => Math.max(size, longest / LONGEST_SIDE_RATIO));
}

/** The first and last coordinate, if there are any. */
function ends(coords) {
  return coords === null ? [] : [coords[0], coords[coords.length - 1]];
}

function spacing(coords) {
  const n = coords.length;
  return n < 2 ? 1 : Math.abs(coords[n - 1] - coords[0]) / (n - 1) || 1;
}

document.querySelectorAll(".viewer").forEach((root) => new Viewer(root));
