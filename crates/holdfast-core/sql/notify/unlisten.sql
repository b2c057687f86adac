-- Hears nothing any more; its answer shows that the server will see the goodbye that follows.
-- Rows: none. Locks: none that others wait for.
unlisten *
