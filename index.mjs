import * as holdfast from './dist/esm/index.js'

export * from './dist/esm/index.js'
export default holdfast
