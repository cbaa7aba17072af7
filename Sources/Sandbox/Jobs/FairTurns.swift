internal import SystemIO

/// The order in which waiting jobs run: fair between clients, and by urgency within a client. A pure value.
///
/// Start-time fair queueing (Goyal, Vin and Cheng, 1996): each client has a virtual time, to which each of its jobs adds its
/// cost when it starts. The client with the earliest virtual time is next. An idle client resumes at the current virtual time,
/// so that it neither saves nor owes turns. Jobs that no client waits for run when no other job waits.
struct FairTurns {
    struct Job {
        /// The clients that wait for the job; empty if there are none.
        let claims: [JobTurn.Claim]
        let urgency: Urgency
        /// The expected cost, in any unit.
        let cost: Int
    }

    /// The virtual time at which the latest job started.
    private var now = 0
    /// The virtual times of clients that are ahead of ``now``.
    private var times: [ClientNetwork?: Int] = [:]

    /// Selects the next job, and adds its cost to the virtual time of the client whose turn it is.
    ///
    /// - Parameter jobs: The waiting jobs in the order of their arrival.
    /// - Returns: The job's index; nil if there are no jobs.
    mutating func next(_ jobs: [Job]) -> Int? {
        var first: [ClientNetwork?: (level: Int, index: Int)] = [:]
        for (index, job) in jobs.enumerated() {
            for claim in job.claims where claim.level < first[claim.client]?.level ?? .max {
                first[claim.client] = (claim.level, index)
            }
        }
        let turns = first.map { client, job in (client: client, time: max(now, times[client] ?? now), index: job.index) }
        guard let turn = turns.min(by: { ($0.time, $0.index) < ($1.time, $1.index) }) else {
            return jobs.indices.min { (jobs[$0].urgency, $0) < (jobs[$1].urgency, $1) }
        }
        now = turn.time
        times[turn.client] = turn.time + max(1, jobs[turn.index].cost)
        times = times.filter { $0.value > now }
        return turn.index
    }
}
