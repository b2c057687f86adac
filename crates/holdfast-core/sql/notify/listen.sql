-- Hears a channel for as long as the session lasts; the name is filled in, quoted, because LISTEN takes no parameter.
-- Rows: none. Locks: none that others wait for.
listen /*channel*/
