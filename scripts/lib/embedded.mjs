// The one place that knows where the build puts the compiled embedded server.
export { EmbeddedPostgres, EmbeddedPostgresError, embeddedUrl } from '../../dist/esm/dev/index.js'
