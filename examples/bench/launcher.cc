#include "examples/bench/launcher.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace optireduce::bench {
namespace {

using Clock = std::chrono::steady_clock;

// How long the others may take to notice that a rank is gone and say so.
constexpr auto kNoticeTime = std::chrono::seconds(3);
constexpr auto kPollInterval = std::chrono::milliseconds(10);

// An open port on loopback and its number.
Result<std::pair<int, int>> OpenMeetingPort(int ranks) {
  const auto failed = [](const char* what) {
    return Status(Code::kUnavailable,
                  std::string(what) + " on 127.0.0.1: " + std::strerror(errno));
  };
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return failed("open a TCP socket");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (bind(fd, generic, length) != 0 || listen(fd, ranks + 16) != 0 ||
      getsockname(fd, generic, &length) != 0) {
    const Status status = failed("listen");
    close(fd);
    return status;
  }
  return std::pair<int, int>(fd, ntohs(address.sin_port));
}

std::string EndText(int wait_status) {
  if (WIFSIGNALED(wait_status)) {
    const int signal_number = WTERMSIG(wait_status);
    return "was killed by signal " + std::to_string(signal_number) + " (" +
           strsignal(signal_number) + ")";
  }
  return "ended with exit code " + std::to_string(WEXITSTATUS(wait_status));
}

// The parent's side: the children by rank.
class Family {
 public:
  explicit Family(std::vector<pid_t> pids) : pids_(std::move(pids)), running_(pids_.size()) {}

  int WaitForAll() {
    while (running_ > 0) {
      int wait_status = 0;
      // Nothing to do but wait, until the first failure sets a limit.
      const pid_t pid = waitpid(-1, &wait_status, exit_code_ == kExitOk ? 0 : WNOHANG);
      if (pid > 0) {
        OnEnd(pid, wait_status);
      } else if (pid == 0) {
        if (Clock::now() >= kill_at_) KillTheRest();
        std::this_thread::sleep_for(kPollInterval);
      } else if (errno != EINTR) {
        return kExitFailed;
      }
    }
    if (!blame_.empty()) std::fprintf(stderr, "optireduce-bench: %s\n", blame_.c_str());
    return exit_code_;
  }

 private:
  void OnEnd(pid_t pid, int wait_status) {
    const std::size_t rank = RankOf(pid);
    if (rank == pids_.size()) return;
    pids_[rank] = 0;
    --running_;
    const int code = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : kExitFailed;
    if (code == kExitOk) return;
    if (exit_code_ == kExitOk) {
      exit_code_ = code;
      kill_at_ = Clock::now() + kNoticeTime;
    }
    // Wrong elements are everybody's result and nobody's failure; whom we killed was only slow.
    if (code == kExitWrong || killed_) return;
    // Of several that have ended, waitpid gives any first: the ranks that noticed may come before
    // the one that was killed, which is the cause.
    const bool cause = WIFSIGNALED(wait_status) && !blamed_a_signal_;
    if (!cause && !blame_.empty()) return;
    blamed_a_signal_ = cause;
    blame_ = "rank " + std::to_string(rank) + " (process " + std::to_string(pid) +
             ") was the first to fail: it " + EndText(wait_status);
  }

  void KillTheRest() {
    for (std::size_t rank = 0; rank < pids_.size(); ++rank) {
      if (pids_[rank] == 0 || killed_) continue;
      std::fprintf(stderr, "optireduce-bench: rank %zu (process %d) did not end and was killed\n",
                   rank, static_cast<int>(pids_[rank]));
      kill(pids_[rank], SIGKILL);
    }
    killed_ = true;
  }

  std::size_t RankOf(pid_t pid) const {
    std::size_t rank = 0;
    while (rank < pids_.size() && pids_[rank] != pid) ++rank;
    return rank;
  }

  std::vector<pid_t> pids_;  // 0: has ended
  std::size_t running_;
  int exit_code_ = kExitOk;
  std::string blame_;  // who was the first to fail, and how
  bool blamed_a_signal_ = false;
  bool killed_ = false;
  Clock::time_point kill_at_{};
};

[[noreturn]] void RunChild(const std::function<int(CommunicatorOptions)>& body,
                           CommunicatorOptions place, pid_t parent) {
  // Ranks never outlive the program that was started: not on ^C, not when it is killed.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(kExitFailed);
  const int code = body(std::move(place));
  const bool flushed = std::fflush(nullptr) == 0;
  _exit(code == kExitOk && !flushed ? kExitFailed : code);
}

}  // namespace

Status CheckLaunch(bool launcher_seen, std::string_view several, int local_ranks) {
  if (local_ranks > 0 && !several.empty()) {
    return {Code::kInvalidArgument,
            "--np " + std::to_string(local_ranks) + " forks all ranks itself, but a launcher has " +
                "started several of us (" + std::string(several) +
                "): leave out --np or the launcher"};
  }
  if (local_ranks == 0 && !launcher_seen) {
    return {Code::kInvalidArgument,
            "how many ranks? Give --np N to fork N ranks on this machine, or start the ranks with "
            "torchrun, mpirun or srun, or each with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT"};
  }
  return Status::Ok();
}

int RunLocalRanks(int ranks, const std::function<int(CommunicatorOptions)>& body) {
  auto port = OpenMeetingPort(ranks);
  if (!port.ok()) {
    std::fprintf(stderr, "optireduce-bench: %s\n", port.status().ToString().c_str());
    return kExitFailed;
  }
  const auto [listen_fd, port_number] = *port;
  const pid_t parent = getpid();
  std::vector<pid_t> pids;
  std::fflush(nullptr);
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t pid = fork();
    if (pid < 0) {
      std::fprintf(stderr, "optireduce-bench: start rank %d: %s\n", rank, std::strerror(errno));
      for (const pid_t started : pids) kill(started, SIGKILL);
      for (const pid_t started : pids) waitpid(started, nullptr, 0);
      close(listen_fd);
      return kExitFailed;
    }
    if (pid == 0) {
      CommunicatorOptions place;
      place.rank = rank;
      place.world_size = ranks;
      place.master_address = "127.0.0.1";
      place.master_port = port_number;
      if (rank == 0) {
        place.listen_fd = listen_fd;
      } else {
        close(listen_fd);
      }
      RunChild(body, std::move(place), parent);
    }
    pids.push_back(pid);
  }
  close(listen_fd);
  return Family(std::move(pids)).WaitForAll();
}

}  // namespace optireduce::bench
