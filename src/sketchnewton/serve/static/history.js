// What the charts show: a bounded list of figures over time.

const MOST = 1500;

export class History {
  #points = [];

  /** The points so far, oldest first. */
  get points() {
    return this.#points;
  }

  get last() {
    return this.#points.at(-1);
  }

  clear() {
    this.#points = [];
  }

  /** Add a point that is newer than all others; true if it was. */
  add(point) {
    if (this.last && !(point.time > this.last.time)) return false;
    this.#points.push(point);
    if (this.#points.length > MOST) this.#thin();
    return true;
  }

  /** The older half loses every second point: the curves still reach back to the start. */
  #thin() {
    const half = Math.floor(MOST / 2);
    this.#points = this.#points.filter((_, i) => i >= half || i % 2 === 0);
  }

  /** The points of the last `range` seconds; all of them if it is 0. */
  within(range) {
    if (!range || !this.last) return this.#points;
    const from = this.last.time - range;
    return this.#points.filter((point) => point.time >= from);
  }
}
