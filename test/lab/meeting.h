// Where the ranks of one measurement meet: memory in a file that they all map, since they run on
// one kernel. Not by way of the network, which may lose packets: all ranks start an iteration
// together whatever the network does.
//
// One thread of each rank. A rank that dies leaves the others waiting: who starts the ranks must
// limit their time.
#ifndef OPTIREDUCE_TEST_LAB_MEETING_H_
#define OPTIREDUCE_TEST_LAB_MEETING_H_

#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace optireduce::lab {

inline constexpr int kRanksMax = 64;

enum class Phase : std::uint32_t { kWarmUp, kMeasure, kEnd };

// Each rank writes its own slot before a barrier, and everybody reads behind it.
struct Slot {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  double cpu_s = 0;
  std::uint64_t wrong = 0;
};

class Meeting {
 public:
  // The first rank that comes makes the file.
  Meeting(const char* path, int ranks) {
    const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || flock(fd, LOCK_EX) != 0) Fail(path);
    struct stat info {};
    if (fstat(fd, &info) != 0) Fail(path);
    const bool first = info.st_size == 0;
    if (first && ftruncate(fd, sizeof(Shared)) != 0) Fail(path);
    void* const memory =
        mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) Fail(path);
    shared_ = static_cast<Shared*>(memory);
    if (first) MakeBarrier(path, ranks);
    flock(fd, LOCK_UN);  // the mapping keeps the lock otherwise, even when the file is closed
    close(fd);
  }

  void Barrier() { pthread_barrier_wait(&shared_->barrier); }
  // Set by rank 0 before a barrier.
  Phase& phase() { return shared_->phase; }
  Slot& slot(int rank) { return shared_->slots.at(static_cast<std::size_t>(rank)); }

 private:
  struct Shared {
    pthread_barrier_t barrier;
    Phase phase;
    std::array<Slot, kRanksMax> slots;
  };

  void MakeBarrier(const char* path, int ranks) {
    pthread_barrierattr_t between_processes;
    pthread_barrierattr_init(&between_processes);
    pthread_barrierattr_setpshared(&between_processes, PTHREAD_PROCESS_SHARED);
    if (pthread_barrier_init(&shared_->barrier, &between_processes,
                             static_cast<unsigned>(ranks)) != 0) {
      Fail(path);
    }
    pthread_barrierattr_destroy(&between_processes);
  }

  [[noreturn]] static void Fail(const char* path) {
    std::perror(path);
    std::exit(1);
  }

  Shared* shared_ = nullptr;
};

}  // namespace optireduce::lab

#endif  // OPTIREDUCE_TEST_LAB_MEETING_H_
