#include "test/loopback/bench/process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>
#include <utility>

namespace optireduce::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kPollInterval = std::chrono::milliseconds(5);

void SetEnvironment(const std::vector<std::string>& environment) {
  for (const char* const name :
       {"RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "PMI_RANK", "PMI_SIZE",
        "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "SLURM_PROCID", "SLURM_NTASKS",
        "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_NODELIST",
        "TORCHELASTIC_RUN_ID"}) {
    unsetenv(name);
  }
  for (const std::string& entry : environment) {
    const std::size_t equals = entry.find('=');
    setenv(entry.substr(0, equals).c_str(), entry.substr(equals + 1).c_str(), 1);
  }
}

void Redirect(const std::string& path, int fd) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  dup2(file, fd);
  close(file);
}

}  // namespace

Process::Process(std::vector<std::string> arguments, std::vector<std::string> environment)
    : out_path_(TemporaryPath("out")), err_path_(TemporaryPath("err")) {
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  pid_ = fork();
  if (pid_ != 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  Redirect(out_path_, STDOUT_FILENO);
  Redirect(err_path_, STDERR_FILENO);
  SetEnvironment(environment);
  execvp(argv[0], argv.data());
  _exit(127);
}

Process::~Process() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  unlink(out_path_.c_str());
  unlink(err_path_.c_str());
}

std::vector<pid_t> Process::Children() const {
  const std::string pid = std::to_string(pid_);
  std::istringstream text(ReadFile("/proc/" + pid + "/task/" + pid + "/children"));
  std::vector<pid_t> children;
  for (pid_t child = 0; text >> child;) children.push_back(child);
  return children;
}

std::string Process::Out() const { return ReadFile(out_path_); }

bool Process::AwaitOut(const std::string& marker, std::chrono::seconds limit) {
  for (const auto end = Clock::now() + limit; Clock::now() < end;) {
    if (Out().find(marker) != std::string::npos) return true;
    std::this_thread::sleep_for(kPollInterval);
  }
  return false;
}

Finished Process::Wait(std::chrono::seconds limit) {
  Finished finished;
  int wait_status = 0;
  for (const auto end = Clock::now() + limit; waitpid(pid_, &wait_status, WNOHANG) == 0;) {
    if (!finished.timed_out && Clock::now() > end) {
      finished.timed_out = true;
      kill(pid_, SIGKILL);
    }
    std::this_thread::sleep_for(kPollInterval);
  }
  pid_ = -1;
  finished.exit_code =
      WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
  finished.out = ReadFile(out_path_);
  finished.err = ReadFile(err_path_);
  return finished;
}

std::vector<std::string> Bench(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), OPTIREDUCE_TEST_BIN_DIR "/optireduce-bench");
  return arguments;
}

std::string TemporaryPath(const std::string& name) {
  static std::atomic<int> next{0};
  return testing::TempDir() + "optireduce_bench_" + std::to_string(getpid()) + "_" +
         std::to_string(next++) + "_" + name;
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace optireduce::bench
