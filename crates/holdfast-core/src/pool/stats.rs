//! What a pool tells about itself.

/// A pool's numbers at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolStats {
    /// The URL without credentials.
    pub url: String,
    /// Sessions at most.
    pub max: usize,
    /// Sessions open: in use, being opened, or idle.
    pub total: usize,
    /// Sessions unused.
    pub idle: usize,
    /// Callers waiting.
    pub waiting: usize,
    /// Sessions handed out since the pool was made.
    pub acquires: u64,
    /// Callers refused because too many waited or they waited too long.
    pub saturation_rejections: u64,
    /// Sessions that could not be opened.
    pub connection_errors: u64,
}
