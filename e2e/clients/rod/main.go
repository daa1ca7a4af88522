package main

import (
	"log"
	"os"

	"github.com/go-rod/rod"
	"github.com/go-rod/rod/lib/launcher"
)

func main() {
	drive(os.Getenv("CDP_WS_URL"))
	address, err := launcher.ResolveURL(os.Getenv("CDP_HTTP_URL"))
	if err != nil {
		log.Fatal("http: ", err)
	}
	drive(address)
}

func drive(address string) {
	browser := rod.New().ControlURL(address).MustConnect()
	page := browser.MustPage(os.Getenv("SITE")).MustWaitLoad()
	page.MustElement("#q").MustInput("sent")
	page.MustElement("#send").MustClick()
	page.MustWait(`() => document.title === "sent"`)
	if string(page.MustScreenshot()[1:4]) != "PNG" {
		log.Fatal("no picture")
	}
	page.MustClose()
}
