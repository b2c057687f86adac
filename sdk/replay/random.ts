/**
 * Random numbers that are the same in every replay: sfc32, seeded from the execution's seed.
 *
 * Good enough for ids and dice (it passes PractRand); never for keys or secrets.
 */

/** Whether a text is a seed: a number in hexadecimal, up to 64 bits. */
export function isSeed(text: string): boolean {
  return /^[0-9a-f]{0,16}$/i.test(text)
}

/** A stream of 32-bit numbers fixed by its seed. */
export class SeededRandom {
  #a: number
  #b: number
  #c: number
  #counter = 1

  /** `seed` passes {@link isSeed}. */
  constructor(seed: string) {
    const value = BigInt(`0x${seed === '' ? '0' : seed}`)
    this.#a = Number(value & 0xffff_ffffn)
    this.#b = Number((value >> 32n) & 0xffff_ffffn)
    this.#c = 0x9e37_79b9
    // Twelve rounds spread every seed bit over the whole state.
    for (let i = 0; i < 12; i++) this.#next()
  }

  #next(): number {
    const sum = (this.#a + this.#b + this.#counter) | 0
    this.#counter = (this.#counter + 1) | 0
    this.#a = this.#b ^ (this.#b >>> 9)
    this.#b = (this.#c + (this.#c << 3)) | 0
    this.#c = ((this.#c << 21) | (this.#c >>> 11)) + sum
    this.#c |= 0
    return sum >>> 0
  }

  /** A number from 0 up to, not including, 1 with 53 random bits, like `Math.random`. */
  fraction(): number {
    const high = this.#next() >>> 5
    const low = this.#next() >>> 6
    return (high * 67_108_864 + low) / 9_007_199_254_740_992
  }

  /** A version 4 UUID. */
  guid(): string {
    const words = [this.#next(), this.#next(), this.#next(), this.#next()]
    const hex = words.map((word) => word.toString(16).padStart(8, '0')).join('')
    const variant = ((Number.parseInt(hex.charAt(16), 16) & 3) | 8).toString(16)
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20)}`
  }
}
