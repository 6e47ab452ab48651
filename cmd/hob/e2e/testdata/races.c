/* races FOLDER KIND [MS]: a server whose children race with whoever ends them.
 *
 * It counts each process that is born in FOLDER/KIND, so that a test can tell
 * whether any is still born after a stop, also of those that live too short to be
 * seen in a listing. All end by themselves after two minutes, or when the count
 * is set to its maximum.
 *
 * respawner    eight workers; one that ends is replaced at once
 * burst        at TERM: 300 children, every second one in a session of its own
 * chain        each process starts the next one after MS, and ends
 * setsid-chain the same, each in a session of its own
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long *born;
static time_t last;

static int over(void)
{
	return time(NULL) >= last || *born >= 1UL << 62;
}

static void rest(void)
{
	while (!over())
		usleep(100000);
	_exit(0);
}

static pid_t child(void)
{
	pid_t pid = fork();
	if (pid == 0)
		__atomic_add_fetch(born, 1, __ATOMIC_SEQ_CST);
	return pid;
}

static void respawn(void)
{
	for (int i = 0; i < 8; i++)
		if (child() == 0)
			rest();
	while (!over())
		if (wait(NULL) > 0 && child() == 0)
			rest();
	_exit(0);
}

static void burst(int sig)
{
	(void)sig;
	for (int i = 0; i < 300; i++)
		if (child() == 0) {
			if (i % 2)
				setsid();
			rest();
		}
	rest();
}

static void chain(int ms, int session)
{
	struct timespec t = {0, ms * 1000000L};
	while (!over()) {
		nanosleep(&t, NULL);
		pid_t pid = child();
		if (pid > 0)
			_exit(0);
		if (pid == 0 && session)
			setsid();
	}
	_exit(0);
}

int main(int argc, char **argv)
{
	char path[4096];
	if (argc < 3)
		return 2;
	snprintf(path, sizeof path, "%s/%s%s", argv[1], argv[2], argc > 3 ? argv[3] : "");
	int fd = open(path, O_RDWR | O_CREAT, 0600);
	if (fd < 0 || ftruncate(fd, sizeof *born) != 0)
		return 2;
	born = mmap(NULL, sizeof *born, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (born == MAP_FAILED)
		return 2;
	last = time(NULL) + 120;
	signal(SIGHUP, SIG_IGN);
	if (strcmp(argv[2], "burst") == 0) {
		signal(SIGTERM, burst);
		puts("ready");
		fflush(stdout);
		rest();
	}
	if (fork() == 0) {
		signal(SIGTERM, SIG_IGN);
		if (strcmp(argv[2], "respawner") == 0)
			respawn();
		chain(argc > 3 ? atoi(argv[3]) : 1, strcmp(argv[2], "setsid-chain") == 0);
	}
	while (*born < 5)
		usleep(1000);
	puts("ready");
	fflush(stdout);
	rest();
}
