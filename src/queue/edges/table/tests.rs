//! What must be so of the edges of a queue at every moment.

use super::*;

mod random;

impl Edges {
    /// `job` says whether a job is held, when it dies, and whether it is dead.
    pub fn check(&self, job: impl Fn(Slot) -> (bool, Option<Time>, bool)) {
        assert!(!self.is_empty() && self.released.is_empty());
        let (mut open, mut behind_dead) = (BTreeMap::<Slot, (u32, u32)>::new(), 0);
        for (slot, dependent) in &self.dependents {
            let (is_held, ..) = job(*slot);
            assert_eq!(is_held, dependent.is_held);
            assert!(!dependent.can_go(), "a job that waits for nothing is held");
            let mut dead = 0;
            for edge in &dependent.edges {
                if let Edge::Open { from, is_dead } = edge {
                    let (edges, of_dead) = open.entry(*from).or_default();
                    *edges += 1;
                    *of_dead += u32::from(*is_dead);
                    dead += u32::from(*is_dead);
                }
            }
            assert_eq!(dependent.dead, dead);
            let is_open = |edge: &&Edge| matches!(edge, Edge::Open { .. });
            assert_eq!(dependent.open as usize, dependent.edges.iter().filter(is_open).count());
            behind_dead += usize::from(is_held && dead > 0);
        }
        assert_eq!(self.behind_dead, behind_dead);
        assert!(open.keys().eq(self.predecessors.keys()));
        for (from, predecessor) in &self.predecessors {
            let (edges, of_dead) = open[from];
            assert_eq!((predecessor.good, predecessor.dead), (edges, of_dead));
            assert_eq!(self.edges_from(*from).len(), edges as usize);
            assert!(predecessor.edges.is_sorted_by_key(|edge| edge.serial));
            let (_, death, is_dead) = job(*from);
            let expected = death.filter(|_| of_dead < edges);
            assert_eq!(predecessor.death, expected, "{is_dead}");
        }
        let deaths = self.predecessors.iter().filter_map(|(from, job)| Some((job.death?, *from)));
        assert_eq!(self.deaths, deaths.collect());
        assert_eq!(self.bytes, self.counted_bytes());
    }

    /// For how many edges there is room in the lists of dependents.
    pub fn room(&self) -> usize {
        self.dependents.values().map(|dependent| dependent.edges.capacity()).sum()
    }

    fn counted_bytes(&self) -> usize {
        let mut endings = BTreeMap::new();
        let edges = self.dependents.values().flat_map(|dependent| &dependent.edges);
        let count = edges.clone().count();
        for edge in edges {
            if let Edge::Settled(ending) = edge {
                endings.insert(Arc::as_ptr(ending), ending.size());
            }
        }
        let refs: usize = self.predecessors.values().map(|job| job.edges.len()).sum();
        count * size_of::<Edge>() + refs * size_of::<EdgeRef>() + endings.values().sum::<usize>()
    }
}
