-- Values that an instance keeps, one or (key null) all, by key.
-- Rows: at most the keys an instance may have. Locks: none. Index: kv_pkey.
-- $1 instance text
-- $2 key text
select v.key, v.value
from /*schema*/kv v
where v.instance = $1::text
  and ($2::text is null or v.key = $2::text)
order by v.key
