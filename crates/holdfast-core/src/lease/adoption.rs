//! A claim of an item that is still in progress in this process: nothing runs twice here.

use crate::store::Fence;

/// What becomes of the new lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Adoption {
    /// The running body goes on under the new lease.
    GoesOn {
        /// The lease it had before, which is over.
        ended: Fence,
    },
    /// The item is just being settled under its old lease, or is not what is stored any more: the new lease waits until
    /// that is known, and then goes back unstarted.
    Waits {
        /// A lease that waited before, which is over.
        ended: Option<Fence>,
    },
}

impl Adoption {
    /// The lease that is over.
    pub fn ended(self) -> Option<Fence> {
        match self {
            Self::GoesOn { ended } => Some(ended),
            Self::Waits { ended } => ended,
        }
    }
}
