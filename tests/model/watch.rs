//! A watch: a history that it tells one by one, and that a list may begin anew
//! at any point of, also one that was passed.

use task_operator::supervisor::time::Instant;

use crate::shared::server::Told;

/// What happened to one object, and how far it was told.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Watch {
    /// Oldest first; nothing stands for the time before the first object.
    pub(crate) history: Vec<Option<Told>>,
    pub(crate) link: Link,
    /// It has been listed since the operator started.
    pub(crate) listed: bool,
}

/// How the stream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Link {
    /// All up to here was told.
    Live(usize),
    /// It has to be listed.
    Broken,
    /// A list is under way that shows how it was here.
    Listing {
        /// When it began.
        began: Instant,
        /// What it shows.
        at: usize,
    },
}

impl Default for Watch {
    fn default() -> Self {
        Self { history: vec![None], link: Link::Broken, listed: false }
    }
}

impl Watch {
    /// The index of what is so now.
    pub(crate) fn newest(&self) -> usize {
        self.history.len() - 1
    }

    /// The index of what it tells next.
    pub(crate) fn next(&self) -> Option<usize> {
        match self.link {
            Link::Live(at) if at < self.newest() => Some(at + 1),
            _ => None,
        }
    }

    /// The operator is gone, and the stream with it.
    pub(crate) fn reset(&mut self) {
        self.link = Link::Broken;
        self.listed = false;
    }

    /// Forgets all but what can still be told, and `back` before that.
    pub(crate) fn trim(&mut self, back: usize) {
        let needed = match self.link {
            Link::Live(at) | Link::Listing { at, .. } => at,
            Link::Broken => self.newest(),
        };
        let gone = needed.saturating_sub(back);
        self.history.drain(..gone);
        if let Link::Live(at) | Link::Listing { at, .. } = &mut self.link {
            *at -= gone;
        }
    }
}
