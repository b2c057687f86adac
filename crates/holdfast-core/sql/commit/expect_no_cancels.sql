-- Fails the whole flight, after which it is found out what stands, when an accepted request to cancel waits for a turn that completes. It
-- stands apart from the statement that locks, which sees nothing of what was accepted while it waited for a row.
-- Rows: the turns given; none come back. Locks: none but the turn rows already locked. Index: inbox_pkey.
-- $1 instances text[]
-- $2 fences bigint[]
select completing.instance
from unnest($1::text[], $2::bigint[]) as completing (instance, fence)
where case
        when (select true from /*schema*/inbox m where m.instance = completing.instance and m.kind = 'CancelRequested' limit 1)
          then ('holdfast: not as expected, ' || completing.fence)::int > 0
        else false
      end
