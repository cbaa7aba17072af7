/// Removing objects.
extension Store {
    /// Removes files of objects whose rows are gone, unless the object has come back. To be called within ``change(_:)``.
    func removeFiles(of objects: [ObjectRow], in state: inout State) {
        for object in objects {
            guard isGone(object.record.id) else { continue }
            // What cannot be removed is an orphan, removed at the next start.
            _ = try? directory.remove(object.record.id, object.record.fileExtension)
        }
    }

    /// Has the next start look for files that nothing knows of.
    func expectOrphans() {
        change { $0.isReconciled = false }
    }

    /// Whether the index surely has no such object.
    private func isGone(_ id: ObjectID) -> Bool {
        do throws(IndexError) {
            return try index.object(id) == nil
        } catch {
            return false
        }
    }

    /// Removes one object, if it is still the one that was looked at.
    ///
    /// - Returns: False when it was gone or had been replaced.
    func forget(_ object: ObjectRow) -> Bool {
        change { state in
            guard !state.isClosed, let current = try? index.object(object.record.id), current.sequence == object.sequence else {
                return false
            }
            remove([current], in: &state)
            return true
        }
    }

    /// Removes objects: files first, so that room is made even where the index cannot be written. To be called within
    /// ``change(_:)``.
    func remove(_ objects: [ObjectRow], in state: inout State) {
        for object in objects {
            _ = try? directory.remove(object.record.id, object.record.fileExtension)
        }
        let new = objects.filter { state.unremovedRows.updateValue($0, forKey: $0.sequence) == nil }
        subtractFromTotals(new)
        removeRows(in: &state)
    }

    /// Tries to remove the rows of objects whose files are gone.
    func removeRows(in state: inout State) {
        guard !state.unremovedRows.isEmpty else { return }
        do throws(IndexError) {
            try index.remove(Array(state.unremovedRows.values))
            state.unremovedRows = [:]
            readTotals(in: state)
        } catch {
            recover(from: error, in: &state)
        }
    }
}
