//! A long history is read with work in proportion to its length. Work is counted, not timed: bytes and blocks asked
//! of the allocator, which is where copying payloads or re-reading history would show.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

use holdfast_replay::{Execution, Reply, StoredEvent};

use crate::harness::*;

thread_local! {
    static BLOCKS: Cell<u64> = const { Cell::new(0) };
    static BYTES: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator, counting per thread.
struct Counting;

// SAFETY: every call goes to the system's allocator unchanged; the counters neither allocate nor panic.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // A thread that is ending has no counters any more; what it does then is not measured.
        let _ = BLOCKS.try_with(|blocks| blocks.set(blocks.get() + 1));
        let _ = BYTES.try_with(|bytes| bytes.set(bytes.get() + layout.size() as u64));
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Blocks and bytes asked for while `work` ran.
fn counted<T>(work: impl FnOnce() -> T) -> (T, u64, u64) {
    let (blocks, bytes) = (BLOCKS.get(), BYTES.get());
    let result = work();
    (result, BLOCKS.get() - blocks, BYTES.get() - bytes)
}

/// Rows and reply of an execution that did `rounds` rounds of one activity and one queue message.
fn long(rounds: u32) -> (Vec<StoredEvent>, String) {
    let payload = format!("\"{}\"", "x".repeat(200));
    let mut live = Live::begin();
    let mut commands = vec![activity(0, "a", &payload), queue(0, "q")];
    live.turn(vec![], &commands, WAITING);
    for round in 0..rounds {
        let source = 2 + round * 4;
        let next = [activity(2 * round + 2, "a", &payload), queue(2 * round + 2, "q")];
        live.turn(vec![done(source, &payload), queued("q", &payload)], &next, WAITING);
        commands.extend(next);
    }
    let rows = live.history.iter().map(StoredEvent::encode).collect();
    let reply = format!(r#"{{"h":7,"n":{},"c":[{}],"o":"waiting"}}"#, 2 * rounds, commands.join(","));
    (rows, reply)
}

/// Decode, replay, activate and match; blocks and bytes asked for.
fn cold_replay(rows: Vec<StoredEvent>, reply: Reply) -> (u64, u64) {
    let (_, blocks, bytes) = counted(|| {
        let events = rows.into_iter().map(|row| row.decode().expect("a row of ours")).collect();
        let mut execution = Execution::replay("i".to_owned(), 1, events).expect("a history of ours");
        let activation = execution.activation(FRAME);
        let turn = execution.complete(reply).expect("it fits");
        assert!(turn.events.is_empty());
        activation.facts.len()
    });
    (blocks, bytes)
}

#[test]
fn ten_thousand_events_take_ten_times_the_work_of_a_thousand() {
    let measure = |rounds| {
        let (rows, reply) = long(rounds);
        let events = rows.len() as u64;
        let (blocks, bytes) = cold_replay(rows, serde_json::from_str(&reply).expect("a reply"));
        (events, blocks, bytes)
    };
    let (small_events, small_blocks, small_bytes) = measure(250);
    let (large_events, large_blocks, large_bytes) = measure(2_500);
    assert!(large_events >= 10_000 && large_events.div_ceil(small_events) == 10);
    // A list that doubles as it grows may have just doubled: a fifth more than ten times is still in proportion.
    assert!(large_blocks <= small_blocks * 12, "{small_blocks} blocks became {large_blocks}");
    assert!(large_bytes <= small_bytes * 12, "{small_bytes} bytes became {large_bytes}");
    // Per event: the row's text with its payload once more as one JSON text, the payload, the name, and growth.
    assert!(large_blocks <= large_events * 8, "{large_blocks} blocks for {large_events} events");
    assert!(large_bytes <= large_events * 2_500, "{large_bytes} bytes for {large_events} events");
}

#[test]
fn a_warm_turn_costs_the_same_however_long_the_history_is() {
    let warm_turn = |rounds| {
        let (rows, reply) = long(rounds);
        let events = rows.into_iter().map(|row| row.decode().expect("a row of ours")).collect();
        let mut execution = Execution::replay("i".to_owned(), 1, events).expect("a history of ours");
        execution.activation(FRAME);
        execution.complete(serde_json::from_str(&reply).expect("a reply")).expect("it fits");
        let message = holdfast_replay::Message { id: 1, body: done(2 + rounds * 4, "1") };
        let reply = format!(r#"{{"h":7,"n":{},"c":[],"o":"waiting"}}"#, 2 * rounds + 1);
        let reply = serde_json::from_str(&reply).expect("a reply");
        let (_, blocks, bytes) = counted(|| {
            execution.accept(vec![message], 0);
            assert_eq!(execution.activation(FRAME).facts.len(), 1);
            execution.complete(reply).expect("it fits")
        });
        (blocks, bytes)
    };
    assert_eq!(warm_turn(10), warm_turn(2_500));
}
