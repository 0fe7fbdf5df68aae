import Glibc
import Synchronization

/// Runs jobs that block, on threads apart from those of Swift's concurrency. A thread ends when no job waits.
package final class BlockingThreads: Sendable {
  private struct State {
    var jobs: [@Sendable () -> Void] = []
    var running = 0
  }

  private let state = Mutex(State())
  private let limit: Int

  package init(limit: Int) { self.limit = limit }

  package func run(_ job: @escaping @Sendable () -> Void) {
    let needsThread = state.withLock { state in
      state.jobs.append(job)
      guard state.running < limit else { return false }
      state.running += 1
      return true
    }
    guard needsThread else { return }
    let pool = unsafe Unmanaged.passRetained(self)
    var thread = pthread_t()
    let code = unsafe pthread_create(
      &thread, nil,
      { pointer in
        if let pointer = unsafe pointer {
          unsafe Unmanaged<BlockingThreads>.fromOpaque(pointer).takeRetainedValue().work()
        }
        return nil
      }, pool.toOpaque())
    if code == 0 {
      pthread_detach(thread)
    } else {
      unsafe pool.takeRetainedValue().work()  // Without another thread, the caller does the work.
    }
  }

  private func work() {
    while let job = next() { job() }
  }

  private func next() -> (@Sendable () -> Void)? {
    state.withLock { state in
      if state.jobs.isEmpty {
        state.running -= 1
        return nil
      }
      return state.jobs.removeFirst()
    }
  }
}
