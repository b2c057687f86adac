//! States of the model: rows as the database holds them and nodes as their processes see themselves.
//!
//! Only what the rules look at is kept, so the state space is finite without budgets: fences are ranks (their order is all
//! that counts), epochs are "current or not", counts stop where nothing further depends on them.

/// Nodes at most.
pub const NODES: usize = 3;
/// Items at most.
pub const ITEMS: usize = 2;

/// How an item ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum End {
    /// Not yet.
    Open,
    /// Its last commit was made.
    Done,
    /// Somebody cancelled it.
    Cancelled,
    /// Its deliveries were used up.
    Poisoned,
}

/// Who owns a row: a node, under the epoch that it has today or an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Owner {
    /// The node.
    pub node: u8,
    /// Owned under the epoch that the node row carries today.
    pub current: bool,
}

/// A row of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Item {
    /// How it ended.
    pub end: End,
    /// Commits made so far: the length of its history.
    pub length: u8,
    /// Who owns it.
    pub owner: Option<Owner>,
    /// The lease is over, or there is none: claimable.
    pub due: bool,
    /// Rank of its fence.
    pub fence: u8,
    /// Rank of the fence of its last commit; 0 before the first.
    pub last_fence: u8,
    /// Claims counted since the last progress.
    pub deliveries: u8,
    /// Bodies started at this length: what the bound of poison is about.
    pub started: u8,
}

/// What a node does with an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Phase {
    /// Claimed by the database; the reply is on its way.
    Asked,
    /// Claimed beyond the limit of deliveries; the reply is on its way.
    AskedPoison,
    /// Claimed, body not started.
    Held,
    /// Its body runs or has run; not settled.
    Started,
    /// To be ended without running.
    Poison,
    /// To be given back unstarted.
    Returning,
    /// The commit was sent and its outcome is not known.
    Unknown,
}

/// A lease as its node sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Hold {
    /// What the node does with it.
    pub phase: Phase,
    /// Rank of the claim's fence.
    pub fence: u8,
    /// Length of the history that the body runs on.
    pub length: u8,
    /// Claimed under the epoch that the node has today.
    pub current: bool,
}

/// A process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Node {
    /// The process runs. One that is paused runs, it only does nothing.
    pub alive: bool,
    /// The database has its node row. Gone when others declared it dead.
    pub row: bool,
    /// What it holds, by item.
    pub holds: [Option<Hold>; ITEMS],
}

/// Database and processes at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct State {
    /// Rows.
    pub items: [Item; ITEMS],
    /// Processes.
    pub nodes: [Node; NODES],
    /// Faults that may still happen, where they are bounded.
    pub faults_left: Option<u8>,
}

impl State {
    /// The first `items` are due, the others have ended; every node is registered.
    pub fn first(items: usize, faults_left: Option<u8>) -> Self {
        let item = Item {
            end: End::Open,
            length: 0,
            owner: None,
            due: true,
            fence: 0,
            last_fence: 0,
            deliveries: 0,
            started: 0,
        };
        let node = Node { alive: true, row: true, holds: [None; ITEMS] };
        let gone = Item { end: End::Done, due: false, ..item };
        Self {
            items: std::array::from_fn(|place| if place < items { item } else { gone }),
            nodes: [node; NODES],
            faults_left,
        }
    }

    /// A fence above all that were minted for this item: fences come from a sequence.
    pub fn mint(&self, item: usize) -> u8 {
        let row = &self.items[item];
        let held = self.nodes.iter().filter_map(|node| node.holds[item]).map(|hold| hold.fence);
        held.chain([row.fence, row.last_fence]).max().unwrap_or(0) + 1
    }

    /// The same state with fences as dense ranks and the nodes, which are alike, in order.
    pub fn canonical(mut self) -> Self {
        for item in 0..ITEMS {
            self.rank_fences(item);
        }
        self.sort_nodes();
        self
    }

    /// The same state with one fault less to come, or `None` when there is none left.
    pub fn spend_fault(mut self) -> Option<Self> {
        self.faults_left = match self.faults_left {
            Some(left) => Some(left.checked_sub(1)?),
            None => None,
        };
        Some(self)
    }

    fn rank_fences(&mut self, item: usize) {
        let mut used = [0_u8; NODES + 3];
        let mut count = 1;
        let row = &self.items[item];
        let held = self.nodes.iter().filter_map(|node| node.holds[item]).map(|hold| hold.fence);
        for fence in held.chain([row.fence, row.last_fence]) {
            if !used[..count].contains(&fence) {
                used[count] = fence;
                count += 1;
            }
        }
        used[..count].sort_unstable();
        let rank = |fence: u8| used[..count].iter().position(|&known| known == fence).unwrap_or(0) as u8;
        let row = &mut self.items[item];
        (row.fence, row.last_fence) = (rank(row.fence), rank(row.last_fence));
        for node in &mut self.nodes {
            if let Some(hold) = &mut node.holds[item] {
                hold.fence = rank(hold.fence);
            }
        }
    }

    fn sort_nodes(&mut self) {
        let before = *self;
        let mut order: [u8; NODES] = std::array::from_fn(|node| node as u8);
        order.sort_by_key(|&node| before.face(node));
        for (place, &node) in order.iter().enumerate() {
            self.nodes[place] = before.nodes[node as usize];
        }
        for (row, old) in self.items.iter_mut().zip(before.items) {
            row.owner = old.owner.map(|owner| Owner {
                node: order.iter().position(|&node| node == owner.node).unwrap_or(0) as u8,
                ..owner
            });
        }
    }

    /// What a node looks like, without its number: its process and how it owns each row.
    fn face(&self, node: u8) -> (Node, [u8; ITEMS]) {
        let owns = self.items.map(|item| match item.owner {
            Some(owner) if owner.node == node => 1 + u8::from(owner.current),
            _ => 0,
        });
        (self.nodes[node as usize], owns)
    }
}
