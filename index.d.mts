import * as holdfast from './index.js'

export * from './index.js'
export default holdfast
