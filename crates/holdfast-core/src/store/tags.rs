//! Which tags a node takes. Plain data: the claims and the look send it.

/// The tasks a node takes, by tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TagFilter {
    /// Tasks without a tag.
    pub untagged: bool,
    /// Tasks with any tag; `tags` has no meaning then.
    pub any: bool,
    /// Tasks with one of these tags.
    pub tags: Vec<String>,
}

impl TagFilter {
    /// Tasks without a tag only.
    pub fn default_only() -> Self {
        Self { untagged: true, any: false, tags: Vec::new() }
    }

    /// All tasks.
    pub fn any() -> Self {
        Self { untagged: true, any: true, tags: Vec::new() }
    }

    /// No task at all.
    pub fn none() -> Self {
        Self { untagged: false, any: false, tags: Vec::new() }
    }

    /// Tasks with one of these tags, and none without.
    pub fn tags(tags: Vec<String>) -> Self {
        Self { untagged: false, any: false, tags }
    }

    /// Tasks without a tag and those with one of these.
    pub fn default_and(tags: Vec<String>) -> Self {
        Self { untagged: true, any: false, tags }
    }

    /// Whether some tagged tasks are taken.
    pub fn takes_tagged(&self) -> bool {
        self.any || !self.tags.is_empty()
    }

    /// Whether no task is taken.
    pub fn is_none(&self) -> bool {
        !self.untagged && !self.takes_tagged()
    }
}

impl Default for TagFilter {
    fn default() -> Self {
        Self::default_only()
    }
}
