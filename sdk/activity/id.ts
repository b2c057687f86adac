/**
 * Ids of standalone activities that their callers do not name: UUIDs of version 7. They rise with time, so that new rows go to
 * one end of the index and lists are in the order of creation.
 */
import { randomUUID } from 'node:crypto'

/** A fresh id. */
export function timeOrderedId(): string {
  const time = Date.now().toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`
}
