/** Loads the native addon. */
export function loadBinding(): unknown
