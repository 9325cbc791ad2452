use super::*;
use crate::queue::value::time::Millis;

fn policy(ttr: u64) -> Terms {
    Terms { policy: Policy::plain(Millis::new(ttr).unwrap()), group: None }
}

#[test]
fn equal_policies_are_kept_once_and_go_with_their_last_user() {
    let mut policies = Policies::new((1, 2));
    let a = policies.take(&policy(1)).unwrap();
    let b = policies.take(&policy(2)).unwrap();
    assert_eq!(policies.take(&policy(1)), Some(a));
    assert_ne!(a, b);
    policies.drop_reference(a);
    assert_eq!(policies.get(a), Some(&policy(1)));
    policies.drop_reference(a);
    assert_eq!(policies.get(a), None);
    assert_eq!(policies.get(b), Some(&policy(2)));
    assert_eq!(policies.len(), 1);
}
