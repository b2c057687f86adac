//! Data tests of replay: what goes in, what must come out. No clock, no chance, no engine.

mod accept;
mod cancellation;
mod corrupt;
mod determinism;
mod ends;
mod golden;
mod harness;
mod locals;
mod program;
mod random;
mod retry;
mod scale;
mod stored;
mod turns;
mod values;
