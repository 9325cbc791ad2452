//! What must be so of the edges of a queue at every moment.

use super::*;

mod random;

impl Edges {
    /// `job` says whether a job is held, and when it dies.
    pub fn check(&self, job: impl Fn(Slot) -> (bool, Option<Time>)) {
        assert!(!self.is_empty() && self.released.is_empty());
        for (slot, key) in &self.dependents {
            let dependent = self.lists.dependents.get(*key).unwrap();
            assert_eq!(dependent.slot, *slot);
            assert_eq!(job(*slot).0, dependent.is_held);
            assert!(!dependent.can_go(), "a job that waits for nothing is held");
        }
        assert_eq!(self.lists.dependents.len(), self.dependents.len());
        self.check_lists();
        for (from, predecessor) in &self.predecessors {
            let hold = predecessor.hold.and_then(|key| self.lists.bundles.get(key));
            let is_known = hold.is_some_and(|bundle| bundle.is_of_dead && bundle.len > 0);
            let expected = job(*from).1.filter(|_| !is_known && self.waiting_for(*from) > 0);
            assert_eq!(predecessor.death, expected, "of {from}");
        }
    }

    /// What must be so whatever jobs there are.
    pub(super) fn check_lists(&self) {
        let mut bundles: Vec<BundleKey> =
            self.predecessors.values().flat_map(Predecessor::bundles).collect();
        bundles.extend(self.pending_positions().keys());
        for (from, predecessor) in &self.predecessors {
            for key in predecessor.bundles() {
                let bundle = self.lists.bundles.get(key).unwrap();
                assert!(matches!(bundle.origin, Origin::Job(slot) if slot == *from));
                assert!(bundle.len > 0 || bundle.is_pending);
                assert!(bundle.is_pending || bundle.is_marked_right());
            }
            assert_ne!(predecessor.bundles().next(), None);
        }
        let (mut open, mut marked) = (BTreeMap::new(), BTreeMap::new());
        for key in &bundles {
            let edges: Vec<EdgeKey> = self.lists.edges_of(*key).collect();
            let bundle = self.lists.bundles.get(*key).unwrap();
            assert_eq!(edges.len(), bundle.len as usize);
            assert!(edges.is_sorted_by_key(|edge| self.lists.serial_of(*edge)));
            let mut before = EdgeKey::NONE;
            for (place, edge) in edges.iter().enumerate() {
                let link = self.lists.link(*edge).unwrap();
                assert_eq!((link.bundle, link.before), (*key, before));
                assert_eq!(link.is_marked, place < bundle.marked as usize);
                before = *edge;
                *open.entry(edge.dependent).or_insert(0) += 1;
                *marked.entry(edge.dependent).or_insert(0) += u32::from(link.is_marked);
            }
        }
        let mut behind_dead = 0;
        for key in self.dependents.values() {
            let job = self.lists.dependents.get(*key).unwrap();
            assert_eq!(job.open, open.get(key).copied().unwrap_or(0));
            assert_eq!(job.marked, marked.get(key).copied().unwrap_or(0));
            let is_open = |edge: &&Edge| matches!(edge, Edge::Open(_));
            assert_eq!(job.open as usize, job.edges.iter().filter(is_open).count());
            behind_dead += usize::from(job.is_held && job.marked > 0);
        }
        assert_eq!(self.behind_dead, behind_dead);
        let deaths = self.predecessors.iter().filter_map(|(from, job)| Some((job.death?, *from)));
        assert_eq!(self.deaths, deaths.collect());
        assert_eq!(self.bytes, self.counted_bytes());
    }

    /// For how many edges there is room in the lists of dependents.
    pub fn room(&self) -> usize {
        let keys = self.dependents.values();
        keys.map(|key| self.lists.dependents.get(*key).unwrap().edges.capacity()).sum()
    }

    fn counted_bytes(&self) -> usize {
        let mut endings = BTreeMap::new();
        let mut count = 0;
        for key in self.dependents.values() {
            for edge in &self.lists.dependents.get(*key).unwrap().edges {
                count += 1;
                if let Edge::Settled(ending) = edge {
                    endings.insert(Arc::as_ptr(ending), ending.size());
                }
            }
        }
        for pending in &self.pending {
            if let Pending::Ended(ended) = pending {
                endings.insert(Arc::as_ptr(&ended.ending), ended.ending.size());
            }
        }
        count * size_of::<Edge>() + endings.values().sum::<usize>()
    }
}
