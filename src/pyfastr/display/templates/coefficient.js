"use strict";

/** The coefficient as factors and scales; entries are products, made when they are looked at. */
class Coefficient {
  constructor(data) {
    this.shape = data.shape;
    this.scales = numbers(data.scales);
    this.factors = data.factors.map(numbers);
    this.nTerms = this.scales.length;
    this.peak = data.peak;
    this.mask = data.mask === null ? null : bytes(data.mask);
    this.strides = this.shape.map((_, m) => this.shape.slice(m + 1).reduce((a, b) => a * b, 1));
  }

  /** Whether an entry, by its place in memory, meets data. */
  isInside(place) {
    return this.mask === null || ((this.mask[place >> 3] >> (7 - (place & 7))) & 1) === 1;
  }

  /** Place in memory of an entry. */
  place(index) {
    return index.reduce((sum, i, m) => sum + i * this.strides[m], 0);
  }

  /** Terms to sum over: all of them, or one. */
  terms(term) {
    return term === null ? [...this.scales.keys()] : [term];
  }

  /** One entry, multiplied in the order in which Python multiplies, so that all bits agree. */
  at(index, term) {
    if (!this.isInside(this.place(index))) return 0;
    let total = 0;
    for (const r of this.terms(term)) {
      let product = this.scales[r];
      for (let m = 0; m < index.length; m += 1) {
        product *= this.factors[m][index[m] * this.nTerms + r];
      }
      total += product;
    }
    return total;
  }

  /** Entries over modes h and v, the others held at an index: n_v rows of n_h numbers. */
  slice(h, v, index, term) {
    const [across, down] = [this.shape[h], this.shape[v]];
    const values = new Float64Array(across * down);
    for (const r of this.terms(term)) {
      let weight = this.scales[r];
      for (let m = 0; m < index.length; m += 1) {
        if (m !== h && m !== v) weight *= this.factors[m][index[m] * this.nTerms + r];
      }
      if (weight !== 0) this.addOuter(values, weight, h, v, r);
    }
    if (this.mask !== null) this.clearOutside(values, h, v, index);
    return values;
  }

  clearOutside(values, h, v, index) {
    const origin = this.place(index.map((i, m) => (m === h || m === v ? 0 : i)));
    const across = this.shape[h];
    for (let k = 0; k < values.length; k += 1) {
      const [i, j] = [k % across, Math.floor(k / across)];
      if (!this.isInside(origin + i * this.strides[h] + j * this.strides[v])) values[k] = 0;
    }
  }

  addOuter(values, weight, h, v, r) {
    const [across, down] = [this.shape[h], this.shape[v]];
    for (let j = 0; j < down; j += 1) {
      const row = weight * this.factors[v][j * this.nTerms + r];
      if (row === 0) continue;
      for (let i = 0; i < across; i += 1) {
        values[j * across + i] += row * this.factors[h][i * this.nTerms + r];
      }
    }
  }

  /** Where the entry of largest magnitude is, of all terms or of one. */
  largest(term) {
    if (term === null) return this.peak.slice();
    return this.shape.map((size, m) => {
      const own = Array.from({ length: size }, (_, i) => this.factors[m][i * this.nTerms + term]);
      return own.reduce((best, f, i) => (Math.abs(f) > Math.abs(own[best]) ? i : best), 0);
    });
  }
}

/** Bytes of base64. */
function bytes(text) {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}

/** Little-endian float64 numbers of base64. */
function numbers(text) {
  return new Float64Array(bytes(text).buffer);
}
