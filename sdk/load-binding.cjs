'use strict'
// Loads the native addon through the loader that the build writes at the package's root. CommonJS for both builds of the
// package: an ES module has no `require`, and a TypeScript source cannot ask for one in a way that suits both.
exports.loadBinding = () => require('../../binding.cjs')
