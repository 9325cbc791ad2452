use super::*;

fn rate(jobs: u32, per: u64, burst: u32) -> Rate {
    Rate::new(jobs, Millis::new(per).unwrap(), burst).unwrap()
}

fn at(unix_ms: u64) -> Time {
    Time::new(unix_ms).unwrap()
}

/// The milliseconds in which jobs leave when somebody asks for one in each, as often as there is
/// one.
fn departures(rate: &Rate, from: u64, to: u64) -> Vec<u64> {
    let (mut tat, mut times) = (Tat::default(), Vec::new());
    for now in from..to {
        for _ in 0..rate.may_leave(tat, at(now)) {
            tat = rate.after(tat, at(now), 1);
            times.push(now);
        }
    }
    times
}

#[test]
fn jobs_leave_at_even_distances_which_do_not_drift() {
    assert_eq!(departures(&rate(3, 10, 1), 0, 31), [0, 3, 6, 10, 13, 16, 20, 23, 26, 30]);
    let times = departures(&rate(7, 1_000, 1), 1_000_000, 2_000_000);
    assert_eq!((times.len(), times[0], times[6_993]), (7_000, 1_000_000, 1_999_000));
}

#[test]
fn more_jobs_than_one_leave_in_a_millisecond_if_the_rate_says_so() {
    assert_eq!(departures(&rate(5, 2, 1), 0, 4), [0, 0, 0, 1, 1, 2, 2, 2, 3, 3]);
}

#[test]
fn a_burst_leaves_at_once_and_comes_again_when_it_was_saved_up() {
    let rate = rate(1, 10, 3);
    assert_eq!(departures(&rate, 100, 121), [100, 100, 100, 110, 120]);
    let tat = rate.after(Tat::default(), at(100), 3);
    assert_eq!((rate.may_leave(tat, at(109)), rate.next(tat, at(109))), (0, at(110)));
    assert_eq!((rate.may_leave(tat, at(120)), rate.may_leave(tat, at(9_999))), (2, 3));
}

/// A token bucket of n, filled in `per`, lets 2n − 1 through within `per`.
#[test]
fn no_window_has_more_than_jobs_and_burst_less_one() {
    for (jobs, per, burst) in
        [(1, 1, 1), (3, 10, 1), (10, 3, 1), (4, 10, 5), (7, 7, 2), (1, 100, 9)]
    {
        let rate = rate(jobs, per, burst);
        let times = departures(&rate, 50, 50 + 5 * per);
        let in_window =
            |from: &u64| times.iter().filter(|time| (*from..from + per).contains(time)).count();
        let most = times.iter().map(in_window).max().unwrap();
        assert_eq!(most, (jobs + burst - 1) as usize, "{rate:?}");
    }
}

#[test]
fn a_clock_that_was_set_back_costs_one_distance_at_most() {
    let rate = rate(2, 1_000, 5);
    let mut tat = rate.after(Tat::default(), at(1_000_000), 5);
    assert_eq!(rate.next(tat, at(1_000_000)), at(1_000_500));
    for back in 1..3_000 {
        let now = at(1_000_000 - back);
        assert!(rate.next(tat, now) <= at(now.unix_ms() + 500), "{back}");
    }
    let yesterday = at(1_000);
    assert_eq!((rate.may_leave(tat, yesterday), rate.next(tat, yesterday)), (1, yesterday));
    tat = rate.after(tat, yesterday, 1);
    assert_eq!((rate.may_leave(tat, yesterday), rate.next(tat, yesterday)), (0, at(1_500)));
}

#[test]
fn a_new_rate_takes_over_what_has_left_but_waits_no_longer_than_itself() {
    let (hourly, fast) = (rate(1, 3_600_000, 1), rate(10, 1_000, 1));
    let tat = hourly.after(Tat::default(), at(5_000), 1);
    assert_eq!(hourly.instead_of(&hourly, tat, at(6_000)), tat);
    let faster = fast.instead_of(&hourly, tat, at(6_000));
    assert_eq!(fast.next(faster, at(6_000)), at(6_100));
    let slower = hourly.instead_of(&fast, faster, at(6_050));
    assert_eq!(hourly.next(slower, at(6_050)), at(6_100));
}

#[test]
fn the_largest_numbers_there_are_fit() {
    assert_eq!(Rate::new(0, Millis::MAX, 1), None);
    assert_eq!(Rate::new(1, Millis::ZERO, 1), None);
    assert_eq!(Rate::new(1, Millis::MAX, 0), None);
    assert_eq!(Rate::new(1, Millis::MAX, 2), None);
    for rate in [rate(u32::MAX, 1, 1), rate(u32::MAX, 1, u32::MAX), rate(1, Time::MAX.unix_ms(), 1)]
    {
        let jobs = rate.may_leave(Tat::default(), Time::MAX);
        assert!(jobs >= rate.burst() as usize, "{rate:?}");
        let tat = rate.after(Tat::default(), Time::MAX, jobs);
        assert_eq!(rate.may_leave(tat, Time::MAX), 0, "{rate:?}");
        assert_eq!(rate.tat(rate.parts_of(tat)), Some(tat), "{rate:?}");
        assert_eq!(rate.next(tat, Time::MAX), Time::MAX);
        for other in [Rate::new(u32::MAX, Millis::MAX, u32::MAX).unwrap(), self::rate(1, 1, 1)] {
            assert!(other.tat(other.parts_of(other.instead_of(&rate, tat, Time::MAX))).is_some());
        }
    }
    assert_eq!(rate(3, 1, 1).tat((0, 3)), None);
    assert_eq!(rate(3, 1, 1).tat((TAT_MS_MAX + 1, 0)), None);
}
